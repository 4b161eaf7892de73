"""What Colab wants before it shows widgets that are not its own: the manager that fetches their front end is enabled, and every display
of one names it. The package anywidget does so for widgets of Python, and is not asked here."""

import sys
import threading
from functools import cache

VIEW = "application/vnd.jupyter.widget-view+json"


def metadata(content):
    """The metadata of a display, with the manager for a widget in it."""
    known = content.get("metadata", {})
    colab = sys.modules.get("google.colab.output")
    if colab is None or VIEW not in content.get("data", ()):
        return known
    # What it registers is the thread's, and meant for all that the notebook shows.
    if threading.current_thread() is threading.main_thread():
        enable(colab)
    url = getattr(getattr(colab, "_widgets", None), "_installed_url", None)
    if url is None:
        return known
    return {**known, VIEW: {**known.get(VIEW, {}), "colab": {"custom_widget_manager": {"url": url}}}}


@cache
def enable(colab):
    """Once: who disables it afterwards means it."""
    colab.enable_custom_widget_manager()
