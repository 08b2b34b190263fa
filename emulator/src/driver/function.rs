//! Functions: the kernels of a module, their attributes and their parameters.

use std::collections::HashMap;
use std::ffi::{CStr, CString};
use std::sync::{LazyLock, Mutex, PoisonError};

use super::Driver;
use super::border::{Out, OutText, Text};
use super::codes::{Answer, Code};
use super::device::max_shared_opt_in;
use super::entry::driver_api;
use crate::config::Config;
use crate::exec::Kernel;

/// A kernel in a module.
#[derive(Debug)]
pub(crate) struct Function {
    pub(crate) module: usize,
    pub(crate) kernel: usize,
    /// The most dynamic shared memory that a launch may ask for.
    pub(crate) max_dynamic_shared: u32,
    carveout: i32,
    pub(crate) non_portable_cluster: bool,
    /// The cluster that was set, where the code requires none.
    pub(crate) cluster: [u32; 3],
    cluster_policy: i32,
}

/// `CU_FUNCTION_LOADING_STATE_LOADED`
const LOADED: u32 = 1;
/// Without opting in a block has 48 KiB, static and dynamic together.
const SHARED_WITHOUT_OPT_IN: u32 = 49152;

/// Keeps a name for as long as the process lives, once.
fn keep_name(name: &str) -> &'static CStr {
    static NAMES: LazyLock<Mutex<HashMap<String, &'static CStr>>> = LazyLock::new(Mutex::default);
    let mut names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
    names
        .entry(name.to_owned())
        .or_insert_with(|| Box::leak(CString::new(name).unwrap_or_default().into_boxed_c_str()))
}

impl Driver {
    /// The handle of a kernel in a module, the same each time.
    pub(crate) fn function_of(&mut self, module: usize, kernel: usize) -> usize {
        let known = self
            .functions
            .iter()
            .find(|(_, function)| function.module == module && function.kernel == kernel)
            .map(|(handle, _)| *handle);
        if let Some(handle) = known {
            return handle;
        }
        let static_bytes = self
            .modules
            .get(&module)
            .and_then(|module| module.program.kernels().get(kernel))
            .map_or(0, |kernel| kernel.shared_bytes);
        let handle = self.new_handle();
        self.functions.insert(
            handle,
            Function {
                module,
                kernel,
                max_dynamic_shared: SHARED_WITHOUT_OPT_IN.saturating_sub(static_bytes),
                carveout: -1,
                non_portable_cluster: false,
                cluster: [0; 3],
                cluster_policy: 0,
            },
        );
        handle
    }

    /// The function that a handle means: its own, or that of a library's kernel in the current
    /// context.
    pub(crate) fn resolve_function(&mut self, handle: usize) -> Answer<usize> {
        if !self.initialised {
            return Err(Code::NOT_INITIALIZED);
        }
        if self.functions.contains_key(&handle) {
            return Ok(handle);
        }
        self.function_of_library_kernel(handle)
    }

    pub(crate) fn function(&self, handle: usize) -> Answer<&Function> {
        self.functions.get(&handle).ok_or(Code::INVALID_HANDLE)
    }

    pub(crate) fn kernel(&self, function: usize) -> Answer<&Kernel> {
        let function = self.function(function)?;
        self.module(function.module)?
            .program
            .kernels()
            .get(function.kernel)
            .ok_or(Code::INVALID_HANDLE)
    }

    /// The device that a function is loaded for.
    pub(crate) fn config_of(&self, function: usize) -> Answer<&Config> {
        let module = self.module(self.function(function)?.module)?;
        let device = self.get_context(module.context)?.device;
        self.devices
            .get(&device)
            .map(|device| &device.config)
            .ok_or(Code::INVALID_DEVICE)
    }

    pub(crate) fn function_attribute(&self, handle: usize, attribute: u32) -> Answer<i32> {
        let function = self.function(handle)?;
        let kernel = self.kernel(handle)?;
        let config = self.config_of(handle)?;
        let cluster = kernel.required_cluster.unwrap_or(function.cluster);
        let small = |value: u32| i32::try_from(value).unwrap_or(i32::MAX);
        Ok(match attribute {
            0 => small(kernel.max_threads.unwrap_or(1024).min(1024)),
            1 => small(kernel.shared_bytes),
            2 => small(kernel.const_bytes),
            3 => small(kernel.local_bytes),
            4 => small(kernel.registers.clamp(1, 255)),
            5 => {
                let target = self.module(function.module)?.program.target();
                let digits: String = target.chars().filter(char::is_ascii_digit).collect();
                digits.parse().unwrap_or(0)
            }
            6 => small(config.compute_capability.0 * 10 + config.compute_capability.1),
            7 => 0,
            8 => small(function.max_dynamic_shared),
            9 => function.carveout,
            10 => i32::from(kernel.explicit_cluster),
            11..=13 => small(cluster[attribute as usize - 11]),
            14 => i32::from(function.non_portable_cluster),
            15 => function.cluster_policy,
            _ => return Err(Code::INVALID_VALUE),
        })
    }

    pub(crate) fn set_function_attribute(
        &mut self,
        handle: usize,
        attribute: u32,
        value: i32,
    ) -> Answer {
        let kernel = self.kernel(handle)?;
        let (shared_bytes, required) = (kernel.shared_bytes, kernel.required_cluster);
        let most = max_shared_opt_in(self.config_of(handle)?).saturating_sub(shared_bytes);
        let function = self
            .functions
            .get_mut(&handle)
            .ok_or(Code::INVALID_HANDLE)?;
        let unsigned = u32::try_from(value).map_err(|_| Code::INVALID_VALUE);
        match attribute {
            8 => {
                let wanted = unsigned?;
                if wanted > most {
                    return Err(Code::INVALID_VALUE);
                }
                function.max_dynamic_shared = wanted;
            }
            9 if (-1..=100).contains(&value) => function.carveout = value,
            11..=13 if required.is_none() => function.cluster[attribute as usize - 11] = unsigned?,
            14 if matches!(value, 0 | 1) => function.non_portable_cluster = value == 1,
            15 if (0..=2).contains(&value) => function.cluster_policy = value,
            _ => return Err(Code::INVALID_VALUE),
        }
        Ok(())
    }

    pub(crate) fn param_info(&self, handle: usize, index: usize) -> Answer<(usize, usize)> {
        let kernel = self.kernel(handle)?;
        let param = kernel.params.get(index).ok_or(Code::INVALID_VALUE)?;
        Ok((param.offset as usize, param.size as usize))
    }

    pub(crate) fn function_name(&self, handle: usize) -> Answer<&'static CStr> {
        Ok(keep_name(&self.kernel(handle)?.name))
    }
}

driver_api! {
    fn cuModuleGetFunction(call, function: Out<usize>, module: usize, name: Text) {
        function.check()?;
        let name = name.get()?;
        let kernel = call
            .module(module)?
            .program
            .kernel(&name)
            .ok_or(Code::NOT_FOUND)?;
        let handle = call.function_of(module, kernel);
        function.set(handle)
    }

    fn cuFuncGetModule(call, module: Out<usize>, function: usize) {
        let function = call.resolve_function(function)?;
        let handle = call.function(function)?.module;
        module.set(handle)
    }

    fn cuFuncGetName(call, name: OutText, function: usize) {
        let function = call.resolve_function(function)?;
        name.set(Some(call.function_name(function)?))
    }

    fn cuFuncGetAttribute(call, value: Out<i32>, attrib: u32, function: usize) {
        let function = call.resolve_function(function)?;
        value.set(call.function_attribute(function, attrib)?)
    }

    fn cuFuncSetAttribute(call, function: usize, attrib: u32, value: i32) {
        let function = call.resolve_function(function)?;
        call.set_function_attribute(function, attrib, value)
    }

    /// A preference that changes nothing a program can see.
    fn cuFuncSetCacheConfig(call, function: usize, config: u32) {
        call.resolve_function(function)?;
        if config > 3 {
            return Err(Code::INVALID_VALUE);
        }
        Ok(())
    }

    fn cuFuncGetParamInfo(call, function: usize, index: usize, offset: Out<usize>, size: Out<usize>) {
        let function = call.resolve_function(function)?;
        let (start, bytes) = call.param_info(function, index)?;
        offset.set(start)?;
        size.set_if_wanted(bytes);
        Ok(())
    }

    fn cuFuncGetParamCount(call, function: usize, count: Out<usize>) {
        let function = call.resolve_function(function)?;
        count.set(call.kernel(function)?.params.len())
    }

    fn cuFuncIsLoaded(call, state: Out<u32>, function: usize) {
        call.resolve_function(function)?;
        state.set(LOADED)
    }

    fn cuFuncLoad(call, function: usize) {
        call.resolve_function(function)?;
        Ok(())
    }
}
