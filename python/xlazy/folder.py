"""A folder for the sockets of a session and the file that names them: this user's alone, and away with the session."""

import fcntl
import os
import shutil
import tempfile

PREFIX = "xlazy-session-"
# The path of a socket may have 107 bytes, of which some are the folder's own name and the socket's.
LONGEST = 72


class Folder:
    def __init__(self):
        place = tempfile.gettempdir()
        if len(os.fsencode(place)) > LONGEST:
            place = "/tmp"
        sweep(place)
        self.path = tempfile.mkdtemp(prefix=PREFIX, dir=place)
        # Held as long as this process lives, however it ends.
        self.held = os.open(self.path, os.O_RDONLY)
        fcntl.flock(self.held, fcntl.LOCK_EX)
        open(self / "held", "x").close()

    def __truediv__(self, name):
        return os.path.join(self.path, name)

    def end(self):
        shutil.rmtree(self.path, ignore_errors=True)
        os.close(self.held)


def sweep(place):
    """Takes away what killed processes have left. A folder without that file is one that is about to be held."""
    for entry in os.scandir(place):
        if not entry.name.startswith(PREFIX):
            continue
        try:
            held = os.open(entry.path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        except OSError:
            continue
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.stat(held).st_uid == os.getuid() and os.listdir(held):
                shutil.rmtree(entry.path, ignore_errors=True)
        except OSError:
            pass
        finally:
            os.close(held)
