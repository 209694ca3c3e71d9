"""Runs the controller until SIGTERM or Ctrl-C: `python -m rayjob_controller`.

In a pod, or with a kubeconfig. Of the environment it takes `NAMESPACE`, the cache's settings, and
where the status page is to listen (`STATUS_HOST`, `STATUS_PORT`).
"""

from __future__ import annotations

import logging
import os
import signal
import threading

from kubernetes import client, config

from jobinfo_cache import Settings
from jobinfo_cache.statuspage import serve
from rayjob_controller.controller import Controller


def main() -> None:
    logging.basicConfig(level=logging.INFO, format="%(levelname)s %(name)s: %(message)s")
    try:
        config.load_incluster_config()
    except config.ConfigException:
        config.load_kube_config()
    ended = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: ended.set())
    controller = Controller(
        client.ApiClient(),
        namespace=os.environ.get("NAMESPACE", "default"),
        settings=Settings.from_env(),
    )
    host = os.environ.get("STATUS_HOST", "127.0.0.1")
    port = int(os.environ.get("STATUS_PORT", "0"))
    with controller, serve(controller.cache, host, port) as page:
        print(f"status page: {page.url}", flush=True)
        ended.wait()


if __name__ == "__main__":
    main()
