//! Libraries: modules of no context, loaded into each where a kernel or variable of theirs is used.

use std::collections::HashMap;
use std::sync::Arc;

use super::Driver;
use super::border::{Host, In, Out, OutText, Text};
use super::codes::{Answer, Code};
use super::entry::driver_api;
use super::module::read_file;
use crate::exec::Program;

/// A library.
#[derive(Debug)]
pub(crate) struct Library {
    program: Arc<Program>,
    /// The handle of each kernel, in the program's order.
    kernels: Vec<usize>,
    /// The module of each context.
    modules: HashMap<usize, usize>,
}

impl Driver {
    fn load_library(&mut self, image: &[u8]) -> Answer<usize> {
        if !self.initialised {
            return Err(Code::NOT_INITIALIZED);
        }
        let text = std::str::from_utf8(image).map_err(|_| Code::INVALID_IMAGE)?;
        if image.starts_with(b"\x7fELF") {
            return Err(Code::NO_BINARY_FOR_GPU);
        }
        let program =
            Program::lower(text).map_err(|error| match (error.unknown_version, error.not_ptx) {
                (Some(_), _) => Code::UNSUPPORTED_PTX_VERSION,
                (None, true) => Code::INVALID_IMAGE,
                (None, false) => Code::INVALID_PTX,
            })?;
        let kernels = program
            .kernels()
            .iter()
            .map(|_| self.new_handle())
            .collect();
        let handle = self.new_handle();
        self.libraries.insert(
            handle,
            Library {
                program: Arc::new(program),
                kernels,
                modules: HashMap::new(),
            },
        );
        Ok(handle)
    }

    fn library(&self, handle: usize) -> Answer<&Library> {
        if !self.initialised {
            return Err(Code::NOT_INITIALIZED);
        }
        self.libraries.get(&handle).ok_or(Code::INVALID_HANDLE)
    }

    /// The module of a library in the current context.
    fn module_of_library(&mut self, handle: usize) -> Answer<usize> {
        let context = self.context()?;
        let library = self.library(handle)?;
        if let Some(module) = library.modules.get(&context)
            && self.modules.contains_key(module)
        {
            return Ok(*module);
        }
        let program = Arc::clone(&library.program);
        let module = self.load_program(context, program)?;
        if let Some(library) = self.libraries.get_mut(&handle) {
            library.modules.insert(context, module);
        }
        Ok(module)
    }

    /// The function of a library's kernel in the current context.
    pub(crate) fn function_of_library_kernel(&mut self, kernel: usize) -> Answer<usize> {
        let (library, index) = self.library_kernel(kernel)?;
        let module = self.module_of_library(library)?;
        Ok(self.function_of(module, index))
    }

    /// Which library a kernel's handle is of, and its place there.
    fn library_kernel(&self, kernel: usize) -> Answer<(usize, usize)> {
        self.libraries
            .iter()
            .find_map(|(handle, library)| {
                let index = library.kernels.iter().position(|known| *known == kernel)?;
                Some((*handle, index))
            })
            .ok_or(Code::INVALID_HANDLE)
    }
}

driver_api! {
    fn cuLibraryLoadData(
        call, library: Out<usize>, code: Host, _options: In<u32>, _values: Out<usize>, _count: u32,
        _library_options: In<u32>, _library_values: Out<usize>, _library_count: u32
    ) {
        library.check()?;
        let image = code.image()?;
        let handle = call.load_library(&image)?;
        library.set(handle)
    }

    fn cuLibraryLoadFromFile(
        call, library: Out<usize>, name: Text, _options: In<u32>, _values: Out<usize>, _count: u32,
        _library_options: In<u32>, _library_values: Out<usize>, _library_count: u32
    ) {
        library.check()?;
        let image = read_file(name)?;
        let text = image.split(|byte| *byte == 0).next().unwrap_or_default();
        let handle = call.load_library(text)?;
        library.set(handle)
    }

    fn cuLibraryUnload(call, library: usize) {
        let modules: Vec<usize> = call.library(library)?.modules.values().copied().collect();
        for module in modules {
            if let Ok(context) = call.module(module).map(|module| module.context) {
                let _ = call.synchronize_context(context);
            }
            call.unload(module);
        }
        call.libraries.remove(&library);
        Ok(())
    }

    fn cuLibraryGetKernel(call, kernel: Out<usize>, library: usize, name: Text) {
        let library = call.library(library)?;
        let index = library.program.kernel(&name.get()?).ok_or(Code::NOT_FOUND)?;
        kernel.set(library.kernels[index])
    }

    fn cuLibraryGetKernelCount(call, count: Out<u32>, library: usize) {
        let kernels = call.library(library)?.kernels.len();
        count.set(u32::try_from(kernels).unwrap_or(u32::MAX))
    }

    fn cuLibraryEnumerateKernels(call, kernels: Out<usize>, count: u32, library: usize) {
        let library = call.library(library)?;
        for (index, kernel) in library.kernels.iter().take(count as usize).enumerate() {
            kernels.set_at(index, *kernel)?;
        }
        Ok(())
    }

    fn cuLibraryGetGlobal(call, pointer: Out<u64>, bytes: Out<usize>, library: usize, name: Text) {
        let module = call.module_of_library(library)?;
        let (address, size) = call.global(module, &name.get()?)?;
        pointer.set_if_wanted(address);
        bytes.set_if_wanted(size);
        Ok(())
    }

    fn cuLibraryGetModule(call, module: Out<usize>, library: usize) {
        let handle = call.module_of_library(library)?;
        module.set(handle)
    }

    fn cuKernelGetFunction(call, function: Out<usize>, kernel: usize) {
        let handle = call.function_of_library_kernel(kernel)?;
        function.set(handle)
    }

    fn cuKernelGetLibrary(call, library: Out<usize>, kernel: usize) {
        let (handle, _) = call.library_kernel(kernel)?;
        library.set(handle)
    }

    fn cuKernelGetAttribute(call, value: Out<i32>, attrib: u32, kernel: usize, device: i32) {
        call.device(device)?;
        let function = call.function_of_library_kernel(kernel)?;
        value.set(call.function_attribute(function, attrib)?)
    }

    fn cuKernelSetAttribute(call, attrib: u32, value: i32, kernel: usize, device: i32) {
        call.device(device)?;
        let function = call.function_of_library_kernel(kernel)?;
        call.set_function_attribute(function, attrib, value)
    }

    fn cuKernelSetCacheConfig(call, kernel: usize, config: u32, device: i32) {
        call.device(device)?;
        call.library_kernel(kernel)?;
        if config > 3 {
            return Err(Code::INVALID_VALUE);
        }
        Ok(())
    }

    fn cuKernelGetName(call, name: OutText, kernel: usize) {
        let function = call.function_of_library_kernel(kernel)?;
        name.set(Some(call.function_name(function)?))
    }

    fn cuKernelGetParamInfo(call, kernel: usize, index: usize, offset: Out<usize>, size: Out<usize>) {
        let function = call.function_of_library_kernel(kernel)?;
        let (start, bytes) = call.param_info(function, index)?;
        offset.set(start)?;
        size.set_if_wanted(bytes);
        Ok(())
    }

    fn cuKernelGetParamCount(call, kernel: usize, count: Out<usize>) {
        let function = call.function_of_library_kernel(kernel)?;
        count.set(call.kernel(function)?.params.len())
    }
}
