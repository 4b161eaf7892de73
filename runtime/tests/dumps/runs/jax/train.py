import jax, jax.numpy as jnp, numpy as np
from functools import partial

def init(key):
    k1, k2 = jax.random.split(key)
    return {"w1": jax.random.normal(k1, (8, 16)), "b1": jnp.zeros(16), "w2": jax.random.normal(k2, (16, 1))}

def model(params, x):
    h = jnp.tanh(x @ params["w1"] + params["b1"])
    return h @ params["w2"]

def loss_fn(params, x, y):
    return jnp.mean((model(params, x) - y) ** 2)

@jax.jit
def step(params, x, y, lr):
    loss, grads = jax.value_and_grad(loss_fn)(params, x, y)
    params = jax.tree.map(lambda p, g: p - lr * g, params, grads)
    return params, loss

@partial(jax.jit, static_argnums=1)
def power(x, n):
    return x ** (n + 2)

params = init(jax.random.PRNGKey(0))
data = np.random.randn(10, 8).astype(np.float32)
for i in range(0, 10, 4):
    x = data[i:i + 4]
    params, loss = step(params, x, x[:, :1], 0.1)
params, loss = step(params, data[:4].astype(np.float16), data[:4, :1], 0.1)
for n in range(3):
    power(x, n)
for k in range(3):
    f = jax.jit(lambda v: v * 2 + 1)
    f(x)
params, loss = step(params, x, x[:, :1], np.float32(0.1))
