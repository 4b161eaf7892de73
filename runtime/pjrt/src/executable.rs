//! Executables: compiled programs, loaded on devices or not.
use crate::api::{self, Handle, MOST_BYTES, Slice, resource};
use crate::buffer::Shape;
use crate::c::{self, Call, PJRT_Buffer, PJRT_Executable, PJRT_LoadedExecutable, Struct};
use crate::{Buffer, BufferType, Client, Device, Error, Result, Value, buffer, value};
use std::ptr::null_mut;
use std::sync::Arc;

resource!(PJRT_Executable, "the executable", PJRT_Executable_Destroy_Args, executable, EXECUTABLES);
resource!(
    PJRT_LoadedExecutable,
    "the loaded executable",
    PJRT_LoadedExecutable_Destroy_Args,
    executable,
    LOADED_EXECUTABLES
);

/// A compiled program; clones are the same one.
#[derive(Clone)]
pub struct Executable(Arc<Inner>);

struct Inner {
    handle: Handle<PJRT_Executable>,
    // After the handle: dropped last.
    _client: Option<Client>,
}

impl Executable {
    pub(crate) fn new(handle: Handle<PJRT_Executable>, client: Option<Client>) -> Executable {
        Executable(Arc::new(Inner { handle, _client: client }))
    }

    /// The module's name.
    pub fn name(&self) -> Result<String> {
        let mut args = c::PJRT_Executable_Name_Args { executable: self.raw(), ..Struct::zeroed() };
        // SAFETY: the executable is alive, and so is its name.
        unsafe {
            self.call(&mut args)?;
            let (at, len) = (args.executable_name, args.executable_name_size);
            api::text(Slice { call: c::PJRT_Executable_Name_Args::NAME, what: "the name", at, len })
        }
    }

    /// Arrays that the program returns on each device.
    pub fn num_outputs(&self) -> Result<usize> {
        let mut args = c::PJRT_Executable_NumOutputs_Args { executable: self.raw(), ..Struct::zeroed() };
        // SAFETY: the executable is alive.
        unsafe { self.call(&mut args) }?;
        match args.num_outputs {
            n if n <= 1 << 20 => Ok(n),
            n => Err(Error::answer(c::PJRT_Executable_NumOutputs_Args::NAME, format!("{n} outputs"))),
        }
    }

    /// The dimensions of every output.
    pub fn output_dims(&self) -> Result<Vec<Vec<i64>>> {
        let call = c::PJRT_Executable_OutputDimensions_Args::NAME;
        let mut args = c::PJRT_Executable_OutputDimensions_Args { executable: self.raw(), ..Struct::zeroed() };
        // SAFETY: the executable is alive, and so are its two lists; the second is as long as the first one's sum.
        let (ranks, mut dims) = unsafe {
            self.call(&mut args)?;
            let what = "the list of ranks";
            let ranks: &[usize] = api::list(Slice { call, what, at: args.dim_sizes, len: args.num_outputs })?;
            let total = ranks.iter().fold(0usize, |sum, rank| sum.saturating_add(*rank));
            (ranks, api::list(Slice { call, what: "the list of dimensions", at: args.dims, len: total })?)
        };
        let mut outputs = Vec::with_capacity(ranks.len());
        for rank in ranks {
            let (output, rest) = dims.split_at(*rank);
            if output.iter().any(|d| *d < 0) {
                return Err(Error::answer(call, format!("dimensions of {output:?}")));
            }
            outputs.push(output.to_vec());
            dims = rest;
        }
        Ok(outputs)
    }

    /// The element type of every output.
    pub fn output_types(&self) -> Result<Vec<BufferType>> {
        let call = c::PJRT_Executable_OutputElementTypes_Args::NAME;
        let mut args = c::PJRT_Executable_OutputElementTypes_Args { executable: self.raw(), ..Struct::zeroed() };
        // SAFETY: the executable is alive, and so is its list.
        let types = unsafe {
            self.call(&mut args)?;
            let (at, len) = (args.output_types.cast_const(), args.num_output_types);
            api::list(Slice { call, what: "the list of types", at, len })?
        };
        types.iter().map(|number| BufferType::from_c(call, *number)).collect()
    }

    /// XLA's cost analysis, such as `flops` and `bytes accessed`.
    pub fn cost_analysis(&self) -> Result<Vec<(String, Value)>> {
        let mut args = c::PJRT_Executable_GetCostAnalysis_Args { executable: self.raw(), ..Struct::zeroed() };
        // SAFETY: the executable is alive, and so is its list.
        unsafe {
            self.call(&mut args)?;
            value::from_c(c::PJRT_Executable_GetCostAnalysis_Args::NAME, args.properties, args.num_properties)
        }
    }

    /// The memory that a run of the program takes.
    pub fn memory_stats(&self) -> Result<CompiledMemoryStats> {
        let mut args = c::PJRT_Executable_GetCompiledMemoryStats_Args { executable: self.raw(), ..Struct::zeroed() };
        // SAFETY: the executable is alive.
        unsafe { self.call(&mut args) }?;
        Ok(CompiledMemoryStats {
            generated_code_size: args.generated_code_size_in_bytes,
            argument_size: args.argument_size_in_bytes,
            output_size: args.output_size_in_bytes,
            alias_size: args.alias_size_in_bytes,
            temp_size: args.temp_size_in_bytes,
            host_generated_code_size: args.host_generated_code_size_in_bytes,
            host_argument_size: args.host_argument_size_in_bytes,
            host_output_size: args.host_output_size_in_bytes,
            host_alias_size: args.host_alias_size_in_bytes,
            host_temp_size: args.host_temp_size_in_bytes,
            peak_memory: args.peak_memory_in_bytes,
            total_size: args.total_size_in_bytes,
        })
    }

    /// The program after XLA's passes: its format (`hlo_with_config`, `hlo` or `mlir`) and the bytes.
    pub fn optimized_program(&self) -> Result<(String, Vec<u8>)> {
        let call = c::PJRT_Executable_OptimizedProgram_Args::NAME;
        let mut program = c::PJRT_Program::zeroed();
        let program = &raw mut program;
        let mut args = c::PJRT_Executable_OptimizedProgram_Args { executable: self.raw(), program, ..Struct::zeroed() };
        // SAFETY: asked without memory the plugin tells the size, asked again it fills memory of that size; the format's name
        // lives as long as the executable. `program` is only touched through this one pointer.
        unsafe {
            self.call(&mut args)?;
            let size = (*program).code_size;
            if size > MOST_BYTES {
                return Err(Error::answer(call, format!("a program of {size} bytes")));
            }
            let mut code = buffer::zeroes(call, size)?;
            if size > 0 {
                (*program).code = code.as_mut_ptr().cast();
                self.call(&mut args)?;
            }
            let (at, len) = ((*program).format, (*program).format_size);
            code.truncate((*program).code_size);
            Ok((api::text(Slice { call, what: "the program's format", at, len })?, code))
        }
    }

    /// The executable in bytes, for [`Client::deserialize`].
    pub fn serialize(&self) -> Result<Vec<u8>> {
        let call = c::PJRT_Executable_Serialize_Args::NAME;
        let mut args = c::PJRT_Executable_Serialize_Args { executable: self.raw(), ..Struct::zeroed() };
        // SAFETY: the executable is alive; the bytes live until the deleter is called, once, after they are copied.
        unsafe {
            self.call(&mut args)?;
            let (at, len) = (args.serialized_bytes, args.serialized_bytes_size);
            let bytes = api::bytes(Slice { call, what: "the serialised executable", at, len }).map(<[u8]>::to_vec);
            if let Some(delete) = args.serialized_executable_deleter {
                delete(args.serialized_executable);
            }
            bytes
        }
    }

    /// Bytes that are equal for equal programs, options and compiler; not every plugin has them.
    pub fn fingerprint(&self) -> Result<Vec<u8>> {
        let call = c::PJRT_Executable_Fingerprint_Args::NAME;
        let mut args = c::PJRT_Executable_Fingerprint_Args { executable: self.raw(), ..Struct::zeroed() };
        // SAFETY: the executable is alive, and so are the bytes.
        unsafe {
            self.call(&mut args)?;
            let (at, len) = (args.executable_fingerprint, args.executable_fingerprint_size);
            Ok(api::bytes(Slice { call, what: "the fingerprint", at, len })?.to_vec())
        }
    }

    /// Bytes of generated code.
    pub fn code_size(&self) -> Result<usize> {
        let call = c::PJRT_Executable_SizeOfGeneratedCodeInBytes_Args::NAME;
        let mut args =
            c::PJRT_Executable_SizeOfGeneratedCodeInBytes_Args { executable: self.raw(), ..Struct::zeroed() };
        // SAFETY: the executable is alive.
        unsafe { self.call(&mut args) }?;
        let size = args.size_in_bytes;
        usize::try_from(size).map_err(|_| Error::answer(call, format!("code of {size} bytes")))
    }

    fn raw(&self) -> *mut PJRT_Executable {
        self.0.handle.raw()
    }

    /// # Safety
    /// As for `Api::call`.
    unsafe fn call<A: Call>(&self, args: &mut A) -> Result<()> {
        // SAFETY: the caller's promise.
        unsafe { self.0.handle.api.call(args) }
    }
}

/// What a program needs, in bytes, as the plugin gives it; fields that an older plugin does not know are 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct CompiledMemoryStats {
    pub generated_code_size: i64,
    pub argument_size: i64,
    pub output_size: i64,
    /// Argument memory that outputs reuse.
    pub alias_size: i64,
    pub temp_size: i64,
    pub host_generated_code_size: i64,
    pub host_argument_size: i64,
    pub host_output_size: i64,
    pub host_alias_size: i64,
    pub host_temp_size: i64,
    /// The most that is in use at once.
    pub peak_memory: i64,
    pub total_size: i64,
}

/// A program loaded on devices, ready to run; clones are the same one.
#[derive(Clone)]
pub struct LoadedExecutable(Arc<Loaded>);

struct Loaded {
    executable: Executable,
    handle: Handle<PJRT_LoadedExecutable>,
    // After the handles: dropped last.
    client: Client,
    devices: Vec<usize>,
    num_outputs: usize,
    /// What each output looks like, when the program runs on one device and the plugin told beforehand.
    shapes: Option<Vec<Arc<Shape>>>,
}

impl LoadedExecutable {
    pub(crate) fn new(client: &Client, handle: Handle<PJRT_LoadedExecutable>) -> Result<LoadedExecutable> {
        let api = client.api();
        let mut get =
            c::PJRT_LoadedExecutable_GetExecutable_Args { loaded_executable: handle.raw(), ..Struct::zeroed() };
        let mut on = c::PJRT_LoadedExecutable_AddressableDevices_Args { executable: handle.raw(), ..Struct::zeroed() };
        // SAFETY: the loaded executable is alive; the executable inside is ours, the list of devices lives as long as it.
        let (inside, devices) = unsafe {
            api.call(&mut get)?;
            let call = c::PJRT_LoadedExecutable_GetExecutable_Args::NAME;
            let inside = Handle::own(api, call, get.executable)?;
            api.call(&mut on)?;
            let (at, len) = (on.addressable_devices, on.num_addressable_devices);
            let call = c::PJRT_LoadedExecutable_AddressableDevices_Args::NAME;
            (inside, client.device_indices(call, api::list(Slice { call, what: "the list of devices", at, len })?)?)
        };
        let executable = Executable::new(inside, Some(client.clone()));
        let num_outputs = executable.num_outputs()?;
        let shapes = if devices.len() == 1 { shapes(&executable, num_outputs) } else { None };
        let client = client.clone();
        Ok(LoadedExecutable(Arc::new(Loaded { executable, handle, client, devices, num_outputs, shapes })))
    }

    /// The client that the program is loaded on.
    pub fn client(&self) -> &Client {
        &self.0.client
    }

    /// The compiled program, for everything about it but running it.
    pub fn executable(&self) -> Executable {
        self.0.executable.clone()
    }

    /// The devices of this process that the program runs on, in the order of `execute_sharded`.
    pub fn addressable_devices(&self) -> Vec<Device> {
        self.0.devices.iter().map(|index| Device::new(self.0.client.clone(), *index)).collect()
    }

    /// Arrays that the program returns on each device.
    pub fn num_outputs(&self) -> usize {
        self.0.num_outputs
    }

    /// Starts the program on its one device: one buffer for each parameter in, one for each result out. Parameters that the
    /// program donates are gone afterwards, except those listed in `non_donatable` by index.
    ///
    /// Returns once the program is started; the outputs carry what goes wrong later.
    /// Errors: wrong number or shapes of arguments, a deleted argument, a program for several devices.
    pub fn execute(&self, args: &[&Buffer], non_donatable: &[i64]) -> Result<Vec<Buffer>> {
        let this = &*self.0;
        if this.devices.len() != 1 {
            return Err(refused(format!("compiled for {} devices here, given arguments for 1", this.devices.len())));
        }
        let mut inputs = Pointers::new(args.len());
        let mut outputs = Pointers::new(this.num_outputs);
        let (inputs, outputs) = (inputs.as_mut(), outputs.as_mut());
        this.fill(inputs, args)?;
        // SAFETY: one list in, one list out, of the lengths that the program has; `fill` has checked the buffers.
        unsafe { this.run(&[inputs.as_ptr()], args.len(), &[outputs.as_mut_ptr()], non_donatable) }?;
        this.take(outputs)
    }

    /// Starts the program on all its devices: for each of [`LoadedExecutable::addressable_devices`] a list of buffers in and
    /// one out. Otherwise like [`LoadedExecutable::execute`].
    pub fn execute_sharded(&self, args: &[Vec<&Buffer>], non_donatable: &[i64]) -> Result<Vec<Vec<Buffer>>> {
        let this = &*self.0;
        let devices = this.devices.len();
        let num_args = args.first().map_or(0, Vec::len);
        if args.len() != devices || args.iter().any(|list| list.len() != num_args) {
            let counts: Vec<usize> = args.iter().map(Vec::len).collect();
            return Err(refused(format!("compiled for {devices} devices here, given arguments by device: {counts:?}")));
        }
        let mut inputs = vec![null_mut(); devices * num_args];
        let mut outputs = vec![null_mut(); devices * this.num_outputs];
        let mut input_lists = Vec::with_capacity(devices);
        let mut output_lists = Vec::with_capacity(devices);
        for (device, args) in args.iter().enumerate() {
            let inputs = &mut inputs[device * num_args..][..num_args];
            this.fill(inputs, args)?;
            input_lists.push(inputs.as_ptr());
            output_lists.push(outputs[device * this.num_outputs..][..this.num_outputs].as_mut_ptr());
        }
        // SAFETY: as above, with one list of each kind for every device.
        unsafe { this.run(&input_lists, num_args, &output_lists, non_donatable) }?;
        let mut by_device = vec![];
        let mut failed = None;
        // All outputs are taken, even after a bad one: dropping them is what frees them.
        for device in 0..devices {
            match this.take(&outputs[device * this.num_outputs..][..this.num_outputs]) {
                Ok(buffers) => by_device.push(buffers),
                Err(e) => failed = Some(e),
            }
        }
        failed.map_or(Ok(by_device), Err)
    }

    /// See [`Executable::name`].
    pub fn name(&self) -> Result<String> {
        self.0.executable.name()
    }

    /// See [`Executable::output_dims`].
    pub fn output_dims(&self) -> Result<Vec<Vec<i64>>> {
        self.0.executable.output_dims()
    }

    /// See [`Executable::output_types`].
    pub fn output_types(&self) -> Result<Vec<BufferType>> {
        self.0.executable.output_types()
    }

    /// See [`Executable::cost_analysis`].
    pub fn cost_analysis(&self) -> Result<Vec<(String, Value)>> {
        self.0.executable.cost_analysis()
    }

    /// See [`Executable::memory_stats`].
    pub fn memory_stats(&self) -> Result<CompiledMemoryStats> {
        self.0.executable.memory_stats()
    }

    /// See [`Executable::optimized_program`].
    pub fn optimized_program(&self) -> Result<(String, Vec<u8>)> {
        self.0.executable.optimized_program()
    }

    /// See [`Executable::serialize`].
    pub fn serialize(&self) -> Result<Vec<u8>> {
        self.0.executable.serialize()
    }

    /// See [`Executable::fingerprint`].
    pub fn fingerprint(&self) -> Result<Vec<u8>> {
        self.0.executable.fingerprint()
    }

    /// See [`Executable::code_size`].
    pub fn code_size(&self) -> Result<usize> {
        self.0.executable.code_size()
    }
}

impl Loaded {
    /// Writes the arguments' pointers, after checking whose they are: a buffer of another client is memory of another
    /// plugin's layout.
    fn fill(&self, into: &mut [*mut PJRT_Buffer], args: &[&Buffer]) -> Result<()> {
        for (index, (into, arg)) in into.iter_mut().zip(args).enumerate() {
            if !arg.client().is(&self.client) {
                return Err(refused(format!("argument {index} belongs to another client")));
            }
            *into = arg.raw();
        }
        Ok(())
    }

    /// # Safety
    /// For every device a list of `num_args` buffers of this client, and room for `num_outputs` pointers.
    unsafe fn run(
        &self,
        inputs: &[*const *mut PJRT_Buffer],
        num_args: usize,
        outputs: &[*mut *mut PJRT_Buffer],
        non_donatable: &[i64],
    ) -> Result<()> {
        if let Some(index) = non_donatable.iter().find(|i| !(0..num_args as i64).contains(i)) {
            return Err(refused(format!("argument {index} is not to be donated, but there are {num_args} arguments")));
        }
        let mut options = c::PJRT_ExecuteOptions {
            non_donatable_input_indices: non_donatable.as_ptr(),
            num_non_donatable_input_indices: non_donatable.len(),
            ..Struct::zeroed()
        };
        let mut args = c::PJRT_LoadedExecutable_Execute_Args {
            executable: self.handle.raw(),
            options: &mut options,
            argument_lists: inputs.as_ptr(),
            num_devices: inputs.len(),
            num_args,
            output_lists: outputs.as_ptr(),
            ..Struct::zeroed()
        };
        // SAFETY: the executable is alive, the options and lists outlive the call.
        unsafe { self.handle.api.call(&mut args) }
    }

    /// Owns what the plugin wrote: all of it, even when one output is missing.
    fn take(&self, outputs: &[*mut PJRT_Buffer]) -> Result<Vec<Buffer>> {
        let mut buffers = Vec::with_capacity(outputs.len());
        let mut failed = None;
        for (index, raw) in outputs.iter().enumerate() {
            // SAFETY: null, or an output of this run, which is ours.
            let handle = unsafe { Handle::own(self.handle.api, c::PJRT_LoadedExecutable_Execute_Args::NAME, *raw) };
            let buffer = handle.and_then(|handle| match &self.shapes {
                Some(shapes) => Ok(Buffer::new(&self.client, handle, shapes[index].clone())),
                None => Buffer::read(&self.client, handle),
            });
            match buffer {
                Ok(buffer) => buffers.push(buffer),
                Err(e) => failed = Some(e),
            }
        }
        failed.map_or(Ok(buffers), Err)
    }
}

/// The outputs' shapes, unless the plugin cannot tell or its lists do not fit together.
fn shapes(executable: &Executable, num_outputs: usize) -> Option<Vec<Arc<Shape>>> {
    let (types, dims) = (executable.output_types().ok()?, executable.output_dims().ok()?);
    if types.len() != num_outputs || dims.len() != num_outputs {
        return None;
    }
    let shape = |(element_type, dims): (BufferType, Vec<i64>)| Arc::new(Shape { element_type, dims: dims.into() });
    Some(types.into_iter().zip(dims).map(shape).collect())
}

fn refused(message: String) -> Error {
    Error::argument(c::PJRT_LoadedExecutable_Execute_Args::NAME, message)
}

/// Null pointers to be filled in, on the stack up to 32 of them.
struct Pointers {
    short: [*mut PJRT_Buffer; 32],
    long: Vec<*mut PJRT_Buffer>,
    len: usize,
}

impl Pointers {
    fn new(len: usize) -> Pointers {
        let long = if len > 32 { vec![null_mut(); len] } else { vec![] };
        Pointers { short: [null_mut(); 32], long, len }
    }

    fn as_mut(&mut self) -> &mut [*mut PJRT_Buffer] {
        match self.len <= 32 {
            true => &mut self.short[..self.len],
            false => &mut self.long,
        }
    }
}

impl std::fmt::Debug for Executable {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        write!(f, "Executable({:?})", self.name())
    }
}

impl std::fmt::Debug for LoadedExecutable {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        write!(f, "LoadedExecutable({:?})", self.name())
    }
}
