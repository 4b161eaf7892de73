"""JAX as a foreign client of the plugin: its own C API client, built from another revision of the header, must get right answers.

Run by run.sh with PJRT_NAMES_AND_LIBRARY_PATHS=xlazy_cpu:... and JAX_PLATFORMS=xlazy_cpu.
"""

import functools
import sys
import traceback

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P

jax.config.update("jax_pjrt_client_create_options", "cpu_device_count:4")

rng = np.random.default_rng(0)


def close(got, want, tolerance=1e-5):
    np.testing.assert_allclose(np.asarray(got), want, rtol=tolerance, atol=tolerance)


def devices():
    found = jax.devices()
    assert len(found) == 4, found
    assert all(d.platform == "cpu" for d in found), found
    # JAX's built-in CPU client must not be what answers here.
    assert "PJRT C API" in found[0].client.platform_version, found[0].client.platform_version


def matmul():
    a, b = rng.normal(size=(64, 96)), rng.normal(size=(96, 32))
    close(jnp.asarray(a, jnp.float32) @ jnp.asarray(b, jnp.float32), a @ b, 1e-4)


def gradient():
    x = rng.normal(size=(8, 16)).astype(np.float32)
    w = rng.normal(size=(16, 4)).astype(np.float32)
    got = jax.grad(lambda w: jnp.sum(jnp.tanh(x @ w) ** 2))(w)
    y = np.tanh(x @ w)
    close(got, x.T @ (2 * y * (1 - y * y)), 1e-4)


def dtypes():
    for dtype in (jnp.bfloat16, jnp.float16, jnp.int8, jnp.uint32, jnp.bool_, jnp.complex64, jnp.float8_e4m3fn):
        values = np.array([0, 1, 1, 0]).astype(dtype)
        got = jax.jit(lambda v: v.reshape(2, 2).T)(values)
        np.testing.assert_array_equal(np.asarray(got), values.reshape(2, 2).T)
    np.testing.assert_array_equal(np.asarray(jnp.arange(6, dtype=jnp.int4) - 3), np.arange(6) - 3)


def control_flow():
    got = jax.jit(lambda n: jax.lax.while_loop(lambda s: s[0] < n, lambda s: (s[0] + 1, s[1] + s[0]), (0, 0)))(10)
    assert int(got[1]) == 45
    close(jax.jit(jnp.sort)(jnp.array([3.0, 1.0, 2.0])), [1, 2, 3])
    close(jax.lax.scan(lambda c, x: (c + x, c), 0.0, jnp.arange(5.0))[1], [0, 0, 1, 3, 6])


def donation():
    x = jnp.ones((1024,))
    y = jax.jit(lambda v: v + 1, donate_argnums=0)(x)
    assert x.is_deleted()
    close(y, np.full(1024, 2.0))


def all_reduce():
    mesh = Mesh(np.array(jax.devices()), ("d",))

    @jax.jit
    @functools.partial(jax.shard_map, mesh=mesh, in_specs=P("d"), out_specs=P())
    def total(x):
        return jax.lax.psum(x, "d")

    x = np.arange(16, dtype=np.float32).reshape(4, 4)
    close(total(x), x.sum(0, keepdims=True))


def partitioned():
    mesh = Mesh(np.array(jax.devices()).reshape(2, 2), ("r", "c"))
    a, b = rng.normal(size=(8, 16)).astype(np.float32), rng.normal(size=(16, 12)).astype(np.float32)
    got = jax.jit(jnp.matmul, out_shardings=NamedSharding(mesh, P("r", "c")))(
        jax.device_put(a, NamedSharding(mesh, P("r", "c"))), jax.device_put(b, NamedSharding(mesh, P("c", None))))
    assert len(got.addressable_shards) == 4 and got.addressable_shards[0].data.shape == (4, 6)
    close(got, a @ b, 1e-4)


def questions():
    compiled = jax.jit(lambda a, b: a @ b).lower(jnp.ones((4, 8)), jnp.ones((8, 2))).compile()
    assert compiled.cost_analysis()["flops"] == 128
    assert compiled.memory_analysis().argument_size_in_bytes == 192
    assert "dot" in compiled.as_text() or "fusion" in compiled.as_text()
    held = jnp.ones((1 << 18,)).block_until_ready()
    assert jax.devices()[0].memory_stats()["bytes_in_use"] >= held.nbytes


def serialized():
    from jax.experimental import serialize_executable

    compiled = jax.jit(lambda a: jnp.cos(a)).lower(jnp.ones(4)).compile()
    again = serialize_executable.deserialize_and_load(
        *serialize_executable.serialize(compiled), execution_devices=jax.devices()[:1])
    close(again(jnp.zeros(4)), np.ones(4))


def errors():
    try:
        jnp.ones((2, 3)).at[0].set(0).block_until_ready()
        x = jnp.ones(4)
        x.delete()
        np.asarray(x)
    except RuntimeError as error:
        assert "deleted" in str(error), error
    else:
        raise AssertionError("a deleted array was read")


failed = 0
for check in (devices, matmul, gradient, dtypes, control_flow, donation, all_reduce, partitioned, questions, serialized, errors):
    try:
        check()
        print(f"pass jax {jax.__version__}: {check.__name__}", flush=True)
    except Exception:  # every check is tried, so that one run shows all that is wrong
        failed += 1
        print(f"FAIL jax {jax.__version__}: {check.__name__}", flush=True)
        traceback.print_exc()
sys.exit(failed != 0)
