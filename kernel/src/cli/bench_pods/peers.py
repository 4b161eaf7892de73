"""What `xlazy bench pods` measures, as JAX does it: python -c SCRIPT ROUNDS [RANK PORT].

Two processes of two CPU devices each, joined by its Gloo collectives. Both run this script, so nothing is sent to a process as a
controller sends it: bytes go there by `broadcast_one_to_all`, and come back by `process_allgather`. Prints one JSON object of
figures, or null where JAX is not installed.
"""
import importlib.util
import json
import os
import socket
import subprocess
import sys
import time

ROUNDS = int(sys.argv[1])
SCRIPT = sys.orig_argv[sys.orig_argv.index("-c") + 1]


def controller():
    if importlib.util.find_spec("jax") is None:
        return print("null")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    start = time.time()
    argv = [sys.executable, "-c", SCRIPT, str(ROUNDS)]
    ranks = [subprocess.Popen([*argv, str(rank), port], stdout=subprocess.PIPE, text=True) for rank in range(2)]
    said = [rank.communicate()[0] for rank in ranks]
    if any(rank.returncode for rank in ranks):
        sys.exit("a process of JAX's failed")
    figures = json.loads(said[0].splitlines()[-1])
    figures["start_s"] -= start
    print(json.dumps({name: round(value, 3) for name, value in figures.items()}))


def worker(rank, port):
    os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=2"
    os.environ["JAX_PLATFORMS"] = "cpu"
    import jax
    import numpy as np
    from jax.sharding import Mesh, NamedSharding, PartitionSpec as P

    jax.config.update("jax_cpu_collectives_implementation", "gloo")
    jax.distributed.initialize(f"127.0.0.1:{port}", 2, rank)
    mesh = Mesh(np.array(jax.devices()), ("data",))
    figures = {"start_s": time.time()}
    split = NamedSharding(mesh, P("data"))

    def timed(name, run):
        run().block_until_ready()
        times = []
        for _ in range(ROUNDS):
            begin = time.perf_counter()
            run().block_until_ready()
            times.append(1e6 * (time.perf_counter() - begin))
        times.sort()
        figures[name + "_least_us"], figures[name + "_us"] = times[0], times[len(times) // 2]

    one = jax.device_put(np.ones(4, np.float32), jax.local_devices()[0])
    add = jax.jit(lambda x: x + 1)
    timed("one_device", lambda: add(one))
    for name, size in SIZES:
        ones = jax.make_array_from_callback((4, size), split, lambda _: np.ones((1, size), np.float32))
        reduce = jax.jit(lambda x: x.sum(0), out_shardings=NamedSharding(mesh, P()))
        timed(name, lambda: reduce(ones))
    from jax.experimental import multihost_utils

    host = np.ones(1 << 24, np.float32)
    for name, send in [
        ("to_worker_gb_s", multihost_utils.broadcast_one_to_all),
        ("from_worker_gb_s", multihost_utils.process_allgather),
    ]:
        figures[name] = 0.0
        for _ in range(3):
            begin = time.perf_counter()
            jax.block_until_ready(send(host))
            figures[name] = max(figures[name], host.nbytes / (time.perf_counter() - begin) / 1e9)
    print(json.dumps(figures))


SIZES = [("16_bytes", 4), ("256_kb", 1 << 16), ("16_mb", 1 << 22)]
controller() if len(sys.argv) == 2 else worker(int(sys.argv[2]), sys.argv[3])
