//! Events, callbacks, asynchronous copies, threads, and nothing left behind.
mod common;

use common::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::time::Duration;
use xlazy_pjrt::{Buffer, BufferType, Client, LiveObjects, LoadedExecutable, Program, live};

/// Adds up a tensor, slowly enough that what waits for it really waits.
const SLOW: &str = r#"
module @slow {
  func.func public @main(%a: tensor<256x256xf32>) -> tensor<256x256xf32> {
    %n = stablehlo.constant dense<60> : tensor<i32>
    %one = stablehlo.constant dense<1> : tensor<i32>
    %zero = stablehlo.constant dense<0> : tensor<i32>
    %scale = stablehlo.constant dense<0.003> : tensor<256x256xf32>
    %r:2 = stablehlo.while(%i = %zero, %x = %a) : tensor<i32>, tensor<256x256xf32>
      cond {
        %c = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
        stablehlo.return %c : tensor<i1>
      } do {
        %d = stablehlo.dot_general %x, %x, contracting_dims = [1] x [0] : (tensor<256x256xf32>, tensor<256x256xf32>) -> tensor<256x256xf32>
        %s = stablehlo.multiply %d, %scale : tensor<256x256xf32>
        %j = stablehlo.add %i, %one : tensor<i32>
        stablehlo.return %j, %s : tensor<i32>, tensor<256x256xf32>
      }
    return %r#1 : tensor<256x256xf32>
  }
}"#;

fn slow(client: &Client) -> (LoadedExecutable, Buffer) {
    (compile(client, SLOW), put(client, &[1.0; 256 * 256], &[256, 256]))
}

const NOTHING: LiveObjects =
    LiveObjects { clients: 0, buffers: 0, executables: 0, loaded_executables: 0, events: 0, topologies: 0 };

/// Waits for what plugin threads are still dropping.
fn assert_nothing_lives() {
    for _ in 0..2000 {
        if live() == NOTHING {
            return;
        }
        std::thread::yield_now();
        std::thread::park_timeout(Duration::from_millis(1));
    }
    panic!("still alive: {:?}", live());
}

#[test]
fn an_event_comes() {
    let client = client(1);
    let (program, a) = slow(&client);
    let output = program.execute(&[&a], &[]).unwrap().remove(0);
    let event = output.ready_event().unwrap();
    let (sender, receiver) = channel();
    event.on_ready(move |result| sender.send(result).unwrap()).unwrap();
    event.await_ready().unwrap();
    assert!(event.is_ready().unwrap());
    assert_eq!(receiver.recv_timeout(Duration::from_secs(60)).unwrap(), Ok(()));
    let (sender, receiver) = channel();
    event.clone().on_ready(move |result| sender.send(result).unwrap()).unwrap();
    assert_eq!(receiver.recv_timeout(Duration::from_secs(60)).unwrap(), Ok(()));
}

#[test]
fn a_panic_in_a_callback_goes_no_further() {
    let client = client(1);
    let a = put(&client, &[1., 2., 3., 4.], &[4]);
    let event = a.ready_event().unwrap();
    event.on_ready(|_| panic!("in a callback")).unwrap();
    event.await_ready().unwrap();
    assert_eq!(get(&a), [1., 2., 3., 4.]);
}

#[test]
fn copies_to_the_host_can_run_beside() {
    let client = client(1);
    let (program, a) = slow(&client);
    let output = program.execute(&[&a], &[]).unwrap().remove(0);
    let copies: Vec<_> = (0..3).map(|_| output.to_host_async().unwrap()).collect();
    let (sender, receiver) = channel();
    output.to_host_async().unwrap().on_ready(move |data| sender.send(data).unwrap()).unwrap();
    drop(output.to_host_async().unwrap());
    let expected = output.to_vec().unwrap();
    for copy in copies {
        assert_eq!(copy.wait().unwrap(), expected);
    }
    assert_eq!(receiver.recv_timeout(Duration::from_secs(60)).unwrap().unwrap(), expected);
    // A copy outlives its buffer.
    let copy = output.to_host_async().unwrap();
    drop(output);
    assert_eq!(copy.wait().unwrap(), expected);
}

/// Host data that counts how often it was dropped.
struct Counted(Vec<u8>, Arc<AtomicUsize>);

impl AsRef<[u8]> for Counted {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.1.fetch_add(1, Ordering::SeqCst);
    }
}

#[test]
fn host_data_lives_until_the_device_has_it() {
    let dropped = Arc::new(AtomicUsize::new(0));
    let data = |n: usize| Counted((0..n).map(|i| i as u8).collect(), dropped.clone());
    {
        let client = client(1);
        let device = device(&client);
        let size = 4 << 20;
        let dims = [size as i64];
        let owned = client.buffer_from_host_owned(data(size), BufferType::U8, &dims, &device).unwrap();
        let zero_copy = client.buffer_from_host_zero_copy(data(size), BufferType::U8, &dims, &device).unwrap();
        assert_eq!(owned.to_vec().unwrap(), data(size).0);
        assert_eq!(zero_copy.to_vec().unwrap(), data(size).0);
        dropped.store(0, Ordering::SeqCst);
        let refused = client.buffer_from_host_owned(data(3), BufferType::U8, &[4], &device);
        assert!(refused.is_err());
        assert_eq!(dropped.load(Ordering::SeqCst), 1);
        dropped.store(0, Ordering::SeqCst);
        drop((owned, zero_copy));
    }
    assert_nothing_lives();
    assert!(dropped.load(Ordering::SeqCst) <= 2);
}

#[test]
fn nothing_is_left_behind() {
    {
        let plugin = plugin();
        let topology = plugin.topology("", &[]).unwrap();
        assert_eq!(live().topologies, 1);
        let ahead = plugin.compile(&topology, &Program::mlir(DOUBLE), &Default::default()).unwrap();
        let client = client(2);
        let program = compile(&client, DOUBLE);
        let a = put(&client, &[1., 2., 3., 4.], &[4]);
        for _ in 0..50 {
            let outputs = program.execute(&[&a], &[]).unwrap();
            outputs[0].ready_event().unwrap().on_ready(|_| ()).unwrap();
            get(&outputs[0]);
            drop(outputs[0].to_host_async().unwrap());
            let _ = program.execute(&[], &[]).unwrap_err();
            let _ = client.compile(&Program::mlir("nonsense"), &Default::default()).unwrap_err();
        }
        let now = live();
        assert_eq!((now.clients, now.topologies, now.loaded_executables, now.executables), (1, 1, 1, 2));
        drop((ahead, client));
        // What hangs on the client keeps it.
        assert_eq!(live().clients, 1);
        assert_eq!(get(&program.execute(&[&a], &[]).unwrap()[0]), [2., 4., 6., 8.]);
    }
    assert_nothing_lives();
}

#[test]
fn a_client_can_be_dropped_inside_a_callback() {
    let (sender, receiver) = channel();
    {
        let client = client(1);
        let (program, a) = slow(&client);
        let output = program.execute(&[&a], &[]).unwrap().remove(0);
        let held = (client.clone(), program, a);
        let event = output.ready_event().unwrap();
        event
            .on_ready(move |result| {
                drop(held);
                sender.send(result).unwrap();
            })
            .unwrap();
    }
    assert_eq!(receiver.recv_timeout(Duration::from_secs(60)).unwrap(), Ok(()));
    assert_nothing_lives();
}

#[test]
fn threads_share_a_client() {
    let client = client(2);
    let program = compile(&client, DOUBLE);
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let (client, program) = (&client, &program);
            scope.spawn(move || {
                for step in 0..200 {
                    let x = (thread * 1000 + step) as f32;
                    let a = put(client, &[x, 1., 2., 3.], &[4]);
                    let b = program.execute(&[&a], &[]).unwrap().remove(0);
                    let c = program.clone().execute(&[&b], &[]).unwrap().remove(0);
                    drop(a);
                    assert_eq!(get(&c), [4. * x, 4., 8., 12.]);
                }
                if thread < 2 {
                    let mine = compile(client, DOUBLE);
                    assert_eq!(mine.num_outputs(), 1);
                }
            });
        }
    });
}

/// Not a limit, a line for people: `cargo nextest run --release -p xlazy-pjrt how_long --no-capture`.
#[test]
fn how_long_a_tiny_program_takes() {
    let client = client(1);
    let program = compile(&client, DOUBLE);
    let a = put(&client, &[1., 2., 3., 4.], &[4]);
    let time = |name: &str, mut run: Box<dyn FnMut() + '_>| {
        let steps = 2000;
        let best = (0..10)
            .map(|_| {
                let start = std::time::Instant::now();
                (0..steps).for_each(|_| run());
                start.elapsed() / steps
            })
            .min();
        println!("{name}: {:?}", best.unwrap());
    };
    let mut dst = [0; 16];
    time("execute and drop", Box::new(|| drop(program.execute(&[&a], &[]).unwrap())));
    time("execute and to_host", Box::new(|| program.execute(&[&a], &[]).unwrap()[0].to_host(&mut dst).unwrap()));
    time("to_host", Box::new(|| a.to_host(&mut dst).unwrap()));
    time("buffer_from_host and drop", Box::new(|| drop(put(&client, &[1., 2., 3., 4.], &[4]))));
    time("ready_event and await", Box::new(|| a.ready_event().unwrap().await_ready().unwrap()));
    time("is_deleted, the cheapest call", Box::new(|| assert!(!a.is_deleted().unwrap())));
}
