//! Buffers on a device, and the way there and back. On the host, data is always dense and row-major.
use crate::api::{self, Handle, MOST_BYTES, Slice, resource};
use crate::c::{self, Call, PJRT_Buffer, PJRT_Event, Struct};
use crate::event::{await_ready, is_ready};
use crate::layout::{self, MinorToMajor};
use crate::{BufferType, Client, Code, Device, Error, Event, Result};
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, PoisonError};

resource!(PJRT_Buffer, "the buffer", PJRT_Buffer_Destroy_Args, buffer, BUFFERS);

/// An array on a device. Dropping it frees the memory once nothing that is running uses it.
pub struct Buffer {
    handle: Handle<PJRT_Buffer>,
    // After the handle: dropped last.
    client: Client,
    shape: Arc<Shape>,
}

/// What is known of a buffer without asking the plugin again.
#[derive(Debug)]
pub(crate) struct Shape {
    pub element_type: BufferType,
    pub dims: Box<[i64]>,
}

impl Shape {
    /// Copies what came from the device in `order` to row-major.
    fn reorder(&self, src: &[u8], dst: &mut [u8], order: &MinorToMajor) {
        match order {
            Some(order) => layout::to_row_major(src, dst, self.element_type.size(), &self.dims, order),
            None => dst.copy_from_slice(src),
        }
    }

    fn reordered(&self, data: Vec<u8>, order: &MinorToMajor) -> Result<Vec<u8>> {
        if order.is_none() {
            return Ok(data);
        }
        let mut dst = zeroes(c::PJRT_Buffer_ToHostBuffer_Args::NAME, data.len())?;
        self.reorder(&data, &mut dst, order);
        Ok(dst)
    }
}

impl Buffer {
    pub(crate) fn new(client: &Client, handle: Handle<PJRT_Buffer>, shape: Arc<Shape>) -> Buffer {
        Buffer { handle, client: client.clone(), shape }
    }

    /// A buffer of whose shape only the plugin knows.
    pub(crate) fn read(client: &Client, handle: Handle<PJRT_Buffer>) -> Result<Buffer> {
        let shape = Arc::new(Shape { element_type: element_type(&handle)?, dims: dims(&handle)? });
        Ok(Buffer::new(client, handle, shape))
    }

    /// The buffer's client.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// The dimensions.
    pub fn dims(&self) -> &[i64] {
        &self.shape.dims
    }

    /// The element type.
    pub fn element_type(&self) -> BufferType {
        self.shape.element_type
    }

    /// Bytes that the array takes on the host, dense.
    pub fn host_size(&self) -> Result<usize> {
        byte_size(c::PJRT_Buffer_ToHostBuffer_Args::NAME, self.element_type(), self.dims())
    }

    /// Bytes that the array takes on the device, padding included.
    pub fn on_device_size(&self) -> Result<usize> {
        let mut args = c::PJRT_Buffer_OnDeviceSizeInBytes_Args { buffer: self.raw(), ..Struct::zeroed() };
        // SAFETY: the buffer is alive.
        unsafe { self.handle.api.call(&mut args) }?;
        Ok(args.on_device_size_in_bytes)
    }

    /// The device that holds the array.
    pub fn device(&self) -> Result<Device> {
        let mut args = c::PJRT_Buffer_Device_Args { buffer: self.raw(), ..Struct::zeroed() };
        // SAFETY: the buffer is alive.
        unsafe { self.handle.api.call(&mut args) }?;
        self.client.device(c::PJRT_Buffer_Device_Args::NAME, args.device)
    }

    /// Waits for the array and copies it to `dst`, which must have exactly [`Buffer::host_size`] bytes.
    ///
    /// Errors: another size, a deleted or donated buffer, or what went wrong while the array was computed.
    pub fn to_host(&self, dst: &mut [u8]) -> Result<()> {
        let size = self.host_size()?;
        if dst.len() != size {
            let message = format!("{} bytes for an array of {size}", dst.len());
            return Err(Error::argument(c::PJRT_Buffer_ToHostBuffer_Args::NAME, message));
        }
        let order = layout::of_buffer(&self.handle, self.dims());
        let Some(order) = order else {
            // SAFETY: `dst` is borrowed until the copy has ended.
            return await_ready(&unsafe { self.copy_out(dst.as_mut_ptr(), size, &None) }?);
        };
        let mut data = zeroes(c::PJRT_Buffer_ToHostBuffer_Args::NAME, size)?;
        let order = Some(order);
        // SAFETY: `data` is ours until the copy has ended.
        await_ready(&unsafe { self.copy_out(data.as_mut_ptr(), size, &order) }?)?;
        self.shape.reorder(&data, dst, &order);
        Ok(())
    }

    /// Like [`Buffer::to_host`], into new memory.
    pub fn to_vec(&self) -> Result<Vec<u8>> {
        self.to_host_async()?.wait()
    }

    /// Starts a copy of the array to new memory on the host.
    pub fn to_host_async(&self) -> Result<HostCopy> {
        let mut data = zeroes(c::PJRT_Buffer_ToHostBuffer_Args::NAME, self.host_size()?)?;
        let order = layout::of_buffer(&self.handle, self.dims());
        // SAFETY: the data stays where it is until the copy has ended: HostCopy waits for that before it lets go.
        let event = unsafe { self.copy_out(data.as_mut_ptr(), data.len(), &order) }?;
        Ok(HostCopy { data, event: Some(event), shape: self.shape.clone(), order, client: self.client.clone() })
    }

    /// The event of the array being there: the end of the program or transfer that makes it.
    pub fn ready_event(&self) -> Result<Event> {
        let mut args = c::PJRT_Buffer_ReadyEvent_Args { buffer: self.raw(), ..Struct::zeroed() };
        // SAFETY: the buffer is alive; the event is ours.
        let handle = unsafe {
            self.handle.api.call(&mut args)?;
            Handle::own(self.handle.api, c::PJRT_Buffer_ReadyEvent_Args::NAME, args.event)?
        };
        Ok(Event::new(handle, self.client.clone()))
    }

    /// Gives the memory back before the buffer is dropped; what is running may still read it.
    pub fn delete(&self) -> Result<()> {
        // SAFETY: the buffer is alive.
        unsafe { self.handle.api.call(&mut c::PJRT_Buffer_Delete_Args { buffer: self.raw(), ..Struct::zeroed() }) }
    }

    /// Whether the memory is gone: deleted, or donated to a program.
    pub fn is_deleted(&self) -> Result<bool> {
        let mut args = c::PJRT_Buffer_IsDeleted_Args { buffer: self.raw(), ..Struct::zeroed() };
        // SAFETY: the buffer is alive.
        unsafe { self.handle.api.call(&mut args) }?;
        Ok(args.is_deleted != 0)
    }

    /// Starts a copy to another device of the same client.
    pub fn copy_to_device(&self, device: &Device) -> Result<Buffer> {
        let call = c::PJRT_Buffer_CopyToDevice_Args::NAME;
        if !device.client().is(&self.client) {
            return Err(Error::argument(call, "the device belongs to another client"));
        }
        let mut args =
            c::PJRT_Buffer_CopyToDevice_Args { buffer: self.raw(), dst_device: device.raw(), ..Struct::zeroed() };
        // SAFETY: buffer and device are alive and of the same client; the new buffer is ours.
        let handle = unsafe {
            self.handle.api.call(&mut args)?;
            Handle::own(self.handle.api, call, args.dst_buffer)?
        };
        Ok(Buffer::new(&self.client, handle, self.shape.clone()))
    }

    pub(crate) fn raw(&self) -> *mut PJRT_Buffer {
        self.handle.raw()
    }

    /// Starts the copy to the host, in the device's order.
    ///
    /// # Safety
    /// `dst` has `size` bytes, which stay writable and unread until the event has come.
    unsafe fn copy_out(&self, dst: *mut u8, size: usize, order: &MinorToMajor) -> Result<Handle<PJRT_Event>> {
        let rank = self.dims().len();
        let row_major: [i64; 16] = std::array::from_fn(|i| rank as i64 - 1 - i as i64);
        let long: Vec<i64>;
        let minor_to_major = match (order, row_major.get(..rank)) {
            (Some(order), _) => order,
            (None, Some(short)) => short,
            (None, None) => {
                long = (0..rank as i64).rev().collect();
                &long
            }
        };
        let mut host_layout = c::PJRT_Buffer_MemoryLayout {
            tiled: c::PJRT_Buffer_MemoryLayout_Tiled {
                minor_to_major: minor_to_major.as_ptr(),
                minor_to_major_size: rank,
                ..Struct::zeroed()
            },
            r#type: c::LAYOUT_TILED,
            ..Struct::zeroed()
        };
        let mut args = c::PJRT_Buffer_ToHostBuffer_Args {
            src: self.raw(),
            host_layout: &mut host_layout,
            dst: dst.cast(),
            dst_size: size,
            ..Struct::zeroed()
        };
        // SAFETY: the layout outlives the call, `dst` the copy; the event is ours.
        unsafe {
            self.handle.api.call(&mut args)?;
            Handle::own(self.handle.api, c::PJRT_Buffer_ToHostBuffer_Args::NAME, args.event)
        }
    }
}

impl std::fmt::Debug for Buffer {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        write!(f, "Buffer({}{:?})", self.element_type(), self.dims())
    }
}

fn dims(buffer: &Handle<PJRT_Buffer>) -> Result<Box<[i64]>> {
    let call = c::PJRT_Buffer_Dimensions_Args::NAME;
    let mut args = c::PJRT_Buffer_Dimensions_Args { buffer: buffer.raw(), ..Struct::zeroed() };
    // SAFETY: the buffer is alive, and so are its dimensions while they are copied.
    let dims = unsafe {
        buffer.api.call(&mut args)?;
        api::list(Slice { call, what: "the list of dimensions", at: args.dims, len: args.num_dims })?
    };
    match dims.iter().find(|d| **d < 0) {
        Some(d) => Err(Error::answer(call, format!("a dimension of {d}"))),
        None => Ok(dims.into()),
    }
}

fn element_type(buffer: &Handle<PJRT_Buffer>) -> Result<BufferType> {
    let mut args = c::PJRT_Buffer_ElementType_Args { buffer: buffer.raw(), ..Struct::zeroed() };
    // SAFETY: the buffer is alive.
    unsafe { buffer.api.call(&mut args) }?;
    BufferType::from_c(c::PJRT_Buffer_ElementType_Args::NAME, args.r#type)
}

/// A copy on its way to the host. Dropping it waits for the copy to end.
pub struct HostCopy {
    data: Vec<u8>,
    event: Option<Handle<PJRT_Event>>,
    shape: Arc<Shape>,
    order: MinorToMajor,
    client: Client,
}

impl HostCopy {
    /// Whether the copy has ended, well or with an error.
    pub fn is_ready(&self) -> Result<bool> {
        self.event.as_ref().map_or(Ok(true), is_ready)
    }

    /// Waits for the copy: the array, dense and row-major.
    ///
    /// Errors: what went wrong while the array was computed or copied.
    pub fn wait(mut self) -> Result<Vec<u8>> {
        self.finish()?;
        self.shape.reordered(std::mem::take(&mut self.data), &self.order)
    }

    /// Calls `then` with the array once it is there, like [`Event::on_ready`].
    pub fn on_ready(mut self, then: impl FnOnce(Result<Vec<u8>>) + Send + 'static) -> Result<()> {
        let Some(handle) = self.event.take() else { return Ok(()) };
        let event = Event::new(handle, self.client.clone());
        // Without its event the copy no longer waits when dropped; it is shared, so that the memory is still here to wait
        // for if the plugin refuses the callback.
        let copy = Arc::new(Mutex::new(self));
        let shared = copy.clone();
        let taken = move || {
            let mut copy = shared.lock().unwrap_or_else(PoisonError::into_inner);
            let data = std::mem::take(&mut copy.data);
            copy.shape.reordered(data, &copy.order)
        };
        event.on_ready(move |result| then(result.and_then(|()| taken()))).inspect_err(|_| {
            let _ = event.await_ready();
            drop(copy);
        })
    }

    fn finish(&mut self) -> Result<()> {
        self.event.take().map_or(Ok(()), |event| await_ready(&event))
    }
}

impl Drop for HostCopy {
    fn drop(&mut self) {
        // The plugin writes to the data until then; an error means that the copy has ended, too.
        let _ = self.finish();
    }
}

pub(crate) fn copy_from_host(
    client: &Client,
    data: &[u8],
    dtype: BufferType,
    dims: &[i64],
    device: &Device,
) -> Result<Buffer> {
    let semantics = c::host_buffer::IMMUTABLE_ONLY_DURING_CALL;
    // SAFETY: the data is borrowed during the call, and the plugin may not read it later.
    let (buffer, _done) = unsafe { from_host(client, data, dtype, dims, device, semantics) }?;
    Ok(buffer)
}

pub(crate) fn keep_from_host<T: AsRef<[u8]> + Send + 'static>(
    client: &Client,
    data: T,
    dtype: BufferType,
    dims: &[i64],
    device: &Device,
    semantics: u32,
) -> Result<Buffer> {
    let kept = Kept::new(data);
    // SAFETY: the box behind `kept` lives until the last clone of it goes, which below is after the event.
    let (buffer, done) = unsafe {
        let data = kept.0.as_ref().as_ref();
        from_host(client, data, dtype, dims, device, semantics)?
    };
    let Some(done) = done else {
        // The API promises an event. Without it nobody knows when the plugin has stopped reading: never free the data.
        std::mem::forget(kept);
        return Err(Error::answer(c::PJRT_Client_BufferFromHostBuffer_Args::NAME, "no event for the host's data"));
    };
    if is_ready(&done) == Ok(true) {
        return Ok(buffer);
    }
    let done = Event::new(done, client.clone());
    let kept = Arc::new(kept);
    let until_done = kept.clone();
    if done.on_ready(move |_| drop(until_done)).is_err() {
        let _ = done.await_ready();
    }
    Ok(buffer)
}

/// Boxed data that the plugin reads: held by a plain pointer, because a `Box` may not be moved while others read it.
struct Kept<T>(NonNull<T>);

// SAFETY: the one owner of the box; what it does with it is drop it, which is sound on another thread if `T: Send`. Sharing a
// `Kept` gives no access to the data.
unsafe impl<T: Send> Send for Kept<T> {}
// SAFETY: as above.
unsafe impl<T: Send> Sync for Kept<T> {}

impl<T> Kept<T> {
    fn new(data: T) -> Kept<T> {
        Kept(NonNull::from(Box::leak(Box::new(data))))
    }
}

impl<T> Drop for Kept<T> {
    fn drop(&mut self) {
        // SAFETY: `new` took it from a box.
        drop(unsafe { Box::from_raw(self.0.as_ptr()) });
    }
}

/// # Safety
/// The data stays readable and unchanged for as long as `semantics` say.
unsafe fn from_host(
    client: &Client,
    data: &[u8],
    dtype: BufferType,
    dims: &[i64],
    device: &Device,
    semantics: u32,
) -> Result<(Buffer, Option<Handle<PJRT_Event>>)> {
    let call = c::PJRT_Client_BufferFromHostBuffer_Args::NAME;
    if !device.client().is(client) {
        return Err(Error::argument(call, "the device belongs to another client"));
    }
    let size = byte_size(call, dtype, dims)?;
    if size != data.len() {
        return Err(Error::argument(call, format!("{} bytes for {dtype}{dims:?}, which takes {size}", data.len())));
    }
    let mut args = c::PJRT_Client_BufferFromHostBuffer_Args {
        client: client.raw(),
        data: data.as_ptr().cast(),
        r#type: dtype as u32,
        dims: dims.as_ptr(),
        num_dims: dims.len(),
        host_buffer_semantics: semantics,
        device: device.raw(),
        ..Struct::zeroed()
    };
    let api = client.api();
    // SAFETY: client and device are alive and belong together, the data has the size that type and dimensions give; buffer
    // and event are ours.
    let (handle, done) = unsafe {
        api.call(&mut args)?;
        (Handle::own(api, call, args.buffer), Handle::own(api, call, args.done_with_host_buffer).ok())
    };
    let shape = Arc::new(Shape { element_type: dtype, dims: dims.into() });
    Ok((Buffer::new(client, handle?, shape), done))
}

/// Bytes of a dense array on the host.
fn byte_size(call: &'static str, dtype: BufferType, dims: &[i64]) -> Result<usize> {
    let size = dims.iter().try_fold(dtype.size(), |size, d| usize::try_from(*d).ok()?.checked_mul(size));
    match size {
        Some(size) if size <= isize::MAX as usize => Ok(size),
        _ => Err(Error::argument(call, format!("no array can be {dtype}{dims:?}"))),
    }
}

/// Memory for an answer of the plugin, or an error where `vec![0; size]` would abort.
pub(crate) fn zeroes(call: &'static str, size: usize) -> Result<Vec<u8>> {
    let none = || Error::new(call, Code::ResourceExhausted, format!("no memory on the host for {size} bytes"));
    if size == 0 {
        return Ok(vec![]);
    }
    if size > 64 * MOST_BYTES {
        return Err(none());
    }
    let layout = std::alloc::Layout::array::<u8>(size).map_err(|_| none())?;
    // SAFETY: the layout is not empty; a Vec takes memory from the global allocator with just this layout.
    unsafe {
        let at = std::alloc::alloc_zeroed(layout);
        if at.is_null() { Err(none()) } else { Ok(Vec::from_raw_parts(at, size, size)) }
    }
}
