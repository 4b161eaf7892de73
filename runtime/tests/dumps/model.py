import sys
import jax
import jax.numpy as jnp


def init(width):
    sizes = [(8, width), (width, width), (width, 3)]
    return {f"layer{i}": {"w": jnp.ones(s), "b": jnp.zeros(s[1])} for i, s in enumerate(sizes)}


def block(p, x, scale):
    x = x @ p["w"] + p["b"]
    return jax.nn.relu(x) * scale


def model(params, x, axis, extra):
    for p in [params["layer0"], params["layer1"]]:
        x = block(p, x, 0.5)
    if extra:
        x = jnp.tanh(x)
    x = jax.nn.softmax(x, axis=axis)
    return x @ params["layer2"]["w"] + params["layer2"]["b"]


def loss(params, x, y, axis, extra):
    out = model(params, x, axis, extra)
    return jnp.mean((out - y) ** 2)


def step(params, x, y, axis=-1, extra=False):
    value, grads = jax.value_and_grad(loss)(params, x, y, axis, extra)
    params = jax.tree.map(lambda p, g: p - 0.1 * g, params, grads)
    return params, value


def rounds(x, n):
    return jax.lax.fori_loop(0, n, lambda i, x: jnp.sin(x) + i, x)


def write(name, f, *args, **kw):
    lowered = jax.jit(f, static_argnames=("n",) if f is rounds else ("axis", "extra")).lower(*args, **kw)
    with open(f"{name}.mlir", "w") as out:
        out.write(lowered.as_text(debug_info=True))
    with open(f"{name}.hlo", "w") as out:
        out.write(lowered.as_text(dialect="hlo", debug_info=True))


params = init(16)
x, y = jnp.ones((4, 8)), jnp.ones((4, 3))
write("step", step, params, x, y)
write("batch", step, params, jnp.ones((6, 8)), jnp.ones((6, 3)))
write("dtype", step, params, jnp.ones((4, 8), jnp.float16), y)
write("axis", step, params, x, y, axis=0)
write("extra", step, params, x, y, extra=True)
write("loop", rounds, x, n=3)
write("loop_more", rounds, x, n=5)
