//! Listening: TCP and Unix sockets, bound where the connection file says.
use super::bad;
use std::io;
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, UnixListener, UnixSocket};

/// As long as the system lets the path of a Unix socket be.
const LONGEST: usize = 107;

/// Connections that may wait to be accepted.
const BACKLOG: u32 = 1024;

pub type Reader = Box<dyn AsyncRead + Send + Unpin>;
pub type Writer = Box<dyn AsyncWrite + Send + Unpin>;

/// A bound socket. The file of a Unix socket is gone with it.
pub enum Listener {
    Tcp(TcpListener),
    Ipc(UnixListener, PathBuf),
}

impl Listener {
    /// Listens on `tcp://ip:port`, where port 0 means any and `*` every interface, or on `ipc://path`.
    pub async fn bind(url: &str) -> io::Result<Listener> {
        let bound = match (url.strip_prefix("tcp://"), url.strip_prefix("ipc://")) {
            (Some(address), _) => bind_tcp(address).await,
            (_, Some(path)) => bind_ipc(path.into()),
            _ => Err(bad("neither tcp:// nor ipc://")),
        };
        bound.map_err(|e| io::Error::other(format!("cannot listen on {url}: {e}")))
    }

    /// The next connection. Never fails: there may just be no descriptor left for a while.
    pub async fn accept(&self, channel: &str) -> (Reader, Writer) {
        loop {
            let accepted = match self {
                Listener::Tcp(listener) => listener.accept().await.map(|(stream, _)| {
                    // A status message is small and somebody waits for it.
                    let _ = stream.set_nodelay(true);
                    let (r, w) = stream.into_split();
                    (Box::new(r) as Reader, Box::new(w) as Writer)
                }),
                Listener::Ipc(listener, _) => listener.accept().await.map(|(stream, _)| {
                    let (r, w) = stream.into_split();
                    (Box::new(r) as Reader, Box::new(w) as Writer)
                }),
            };
            match accepted {
                Ok(halves) => return halves,
                Err(e) => {
                    super::log_stranger(format_args!("{channel}: cannot accept a connection: {e}"));
                    // Trying again at once would only burn a core.
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
            }
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        if let Listener::Ipc(_, path) = self {
            let _ = std::fs::remove_file(path);
        }
    }
}

async fn bind_tcp(address: &str) -> io::Result<Listener> {
    let (ip, port) = address.rsplit_once(':').ok_or_else(|| bad("no port"))?;
    let port: u16 = port.parse().map_err(|_| bad("the port is not a number"))?;
    let ip = if ip == "*" { "0.0.0.0" } else { ip.trim_matches(['[', ']']) };
    Ok(Listener::Tcp(TcpListener::bind((ip, port)).await?))
}

/// Takes the place of a stale file; what is there for others to use is theirs.
fn bind_ipc(path: PathBuf) -> io::Result<Listener> {
    use std::os::unix::fs::FileTypeExt;
    if std::fs::symlink_metadata(&path).is_ok_and(|m| m.file_type().is_socket()) {
        std::fs::remove_file(&path)?;
    }
    if path.as_os_str().len() > LONGEST {
        let what = "the path of a socket may have 107 bytes; set JUPYTER_RUNTIME_DIR to a folder with a shorter one";
        return Err(io::Error::other(what));
    }
    let socket = UnixSocket::new_stream()?;
    // Before it is bound, so that there is no moment in which others could connect: the file takes the mode over.
    nix::sys::stat::fchmod(socket.as_fd(), nix::sys::stat::Mode::from_bits_truncate(0o600))?;
    socket.bind(&path)?;
    Ok(Listener::Ipc(socket.listen(BACKLOG)?, path))
}
