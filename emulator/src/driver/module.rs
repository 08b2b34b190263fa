//! Modules: loading, their variables, and the log that says why one was refused.

use std::fs;
use std::sync::Arc;

use super::Driver;
use super::border::{Host, In, Out, Text};
use super::codes::{Answer, Code};
use super::entry::driver_api;
use crate::exec::{LowerError, Program, VariableSpace};
use crate::failure::Place;
use crate::memory::{Kind, Request, Stage, Token};
use crate::report::ReportKind;

/// A module in a context.
#[derive(Debug)]
pub(crate) struct Module {
    pub(crate) context: usize,
    pub(crate) program: Arc<Program>,
    pub(crate) symbols: Arc<Vec<u64>>,
    variables: Vec<Token>,
}

/// Why a module was refused: the code, and what the log says.
struct Refusal {
    code: Code,
    log: String,
}

/// The logs that a caller wants, as options of the load.
#[derive(Default)]
struct Logs {
    error: Option<Log>,
    info: Option<Log>,
}

#[derive(Clone, Copy, Default)]
struct Log {
    buffer: usize,
    size: usize,
    /// The slot that takes the length written.
    slot: Option<usize>,
}

/// `CU_MODULE_EAGER_LOADING`
const EAGER: u32 = 1;

const INFO_BUFFER: u32 = 3;
const INFO_SIZE: u32 = 4;
const ERROR_BUFFER: u32 = 5;
const ERROR_SIZE: u32 = 6;

impl Logs {
    fn read(count: u32, options: In<u32>, values: Out<usize>) -> Answer<Self> {
        let mut logs = Self::default();
        for index in 0..count as usize {
            let value = values.get_at(index)?;
            match options.at(index)? {
                ERROR_BUFFER => logs.error.get_or_insert_default().buffer = value,
                INFO_BUFFER => logs.info.get_or_insert_default().buffer = value,
                ERROR_SIZE => logs.error.get_or_insert_default().sized(value, index),
                INFO_SIZE => logs.info.get_or_insert_default().sized(value, index),
                _ => {}
            }
        }
        Ok(logs)
    }
}

impl Log {
    fn sized(&mut self, size: usize, slot: usize) {
        // The size is an `unsigned int` in a pointer's place.
        self.size = size & 0xffff_ffff;
        self.slot = Some(slot);
    }

    fn write(self, text: &str, values: Out<usize>) -> Answer {
        let room = self.size.saturating_sub(1);
        let length = text.len().min(room);
        if self.buffer != 0 && self.size > 0 {
            let buffer = Host::from_number(self.buffer as u64)?;
            buffer.write(&text.as_bytes()[..length]);
            buffer.offset(length).write(&[0]);
        }
        match self.slot {
            Some(slot) => values.set_at(slot, length),
            None => Ok(()),
        }
    }
}

fn error_log(error: &LowerError) -> String {
    format!(
        "ptxas application ptx input, line {}; error   : {}\nptxas fatal   : Ptx assembly aborted due to errors\n",
        error.position.line, error.message
    )
}

impl Driver {
    /// Reads an image for a device.
    fn lower(&mut self, image: &[u8], device: u32) -> Result<Arc<Program>, Refusal> {
        let refuse = |code, log: String| Err(Refusal { code, log });
        let Some(state) = self.devices.get_mut(&device) else {
            return refuse(Code::INVALID_DEVICE, String::new());
        };
        if state.failures.strike(Place::Load) {
            return refuse(
                Code::INVALID_IMAGE,
                "loading a module fails because the test asked for it\n".into(),
            );
        }
        if image.starts_with(b"\x7fELF")
            || !image.is_empty() && image.len() == 4 && image[0] >= 0x50
        {
            return refuse(
                Code::NO_BINARY_FOR_GPU,
                "the image is machine code of a GPU, which the emulator cannot run: give it PTX\n"
                    .into(),
            );
        }
        let Ok(text) = std::str::from_utf8(image) else {
            return refuse(Code::INVALID_IMAGE, "the image is no text\n".into());
        };
        if text.trim().is_empty() {
            return refuse(Code::INVALID_IMAGE, "the image is empty\n".into());
        }
        let program = match Program::lower(text) {
            Ok(program) => program,
            Err(error) => {
                let code = match (&error.unknown_version, error.not_ptx) {
                    (Some(_), _) => Code::UNSUPPORTED_PTX_VERSION,
                    (None, true) => Code::INVALID_IMAGE,
                    (None, false) => Code::INVALID_PTX,
                };
                return refuse(code, error_log(&error));
            }
        };
        if let Err(log) = check_target(program.target(), state.config.compute_capability) {
            return refuse(Code::INVALID_PTX, log);
        }
        let undefined = program
            .variables()
            .iter()
            .find(|variable| variable.is_extern)
            .map(|variable| variable.name.clone());
        if let Some(name) = undefined {
            return refuse(
                Code::INVALID_PTX,
                format!("ptxas fatal   : Unresolved extern variable '{name}'\n"),
            );
        }
        Ok(Arc::new(program))
    }

    /// Loads an image into a context; the log of a refusal goes to reports too.
    fn load(&mut self, context: usize, image: &[u8]) -> Result<usize, Refusal> {
        let device = match self.get_context(context) {
            Ok(context) => context.device,
            Err(code) => {
                return Err(Refusal {
                    code,
                    log: String::new(),
                });
            }
        };
        let program = match self.lower(image, device) {
            Ok(program) => program,
            Err(refusal) => {
                let message = format!("a module is refused: {}", refusal.log.trim_end());
                self.refuse(ReportKind::InvalidImage, device, refusal.code, message);
                return Err(refusal);
            }
        };
        self.load_program(context, program).map_err(|code| Refusal {
            code,
            log: String::new(),
        })
    }

    /// Gives a program its variables in a context.
    pub(crate) fn load_program(&mut self, context: usize, program: Arc<Program>) -> Answer<usize> {
        let device = self.get_context(context)?.device;
        let mut variables = Vec::new();
        for variable in program.variables() {
            let kind = Kind::Variable {
                name: variable.name.clone(),
                constant: variable.space == VariableSpace::Const,
                managed: variable.is_managed,
            };
            let token = self.memory.allocate(Request {
                kind,
                size: variable.size,
                device,
                context,
                stage: Stage::Live,
                align: variable.align,
            });
            variables.push(token.ok_or(Code::OUT_OF_MEMORY)?);
        }
        let symbols: Vec<u64> = variables.iter().map(|token| self.address(*token)).collect();
        for (index, variable) in program.variables().iter().enumerate() {
            let (token, start) = (variables[index], symbols[index]);
            self.memory.write(token, start, &variable.initial);
            for relocation in &variable.relocations {
                let target = symbols.get(relocation.variable).copied().unwrap_or(0);
                let value = relocation.value(target).to_le_bytes();
                let size = (relocation.size as usize).min(value.len());
                self.memory
                    .write(token, start + relocation.offset, &value[..size]);
            }
        }
        let handle = self.new_handle();
        self.modules.insert(
            handle,
            Module {
                context,
                program,
                symbols: Arc::new(symbols),
                variables,
            },
        );
        Ok(handle)
    }

    pub(crate) fn module(&self, handle: usize) -> Answer<&Module> {
        if !self.initialised {
            return Err(Code::NOT_INITIALIZED);
        }
        self.modules.get(&handle).ok_or(Code::INVALID_HANDLE)
    }

    pub(crate) fn unload(&mut self, handle: usize) {
        let Some(module) = self.modules.remove(&handle) else {
            return;
        };
        self.functions
            .retain(|_, function| function.module != handle);
        for token in module.variables {
            self.memory.free(token);
        }
    }

    /// Where a module has a variable, and how large it is.
    pub(crate) fn global(&self, module: usize, name: &str) -> Answer<(u64, usize)> {
        let module = self.module(module)?;
        let index = module
            .program
            .variables()
            .iter()
            .position(|variable| variable.name == name)
            .ok_or(Code::NOT_FOUND)?;
        let size = usize::try_from(module.program.variables()[index].size).unwrap_or(usize::MAX);
        Ok((module.symbols[index], size))
    }
}

/// Whether code for `.target` runs on a device: of the same or an older architecture, `a` only on that
/// very one, `f` within its family.
fn check_target(target: &str, device: (u32, u32)) -> Result<(), String> {
    let refuse = || {
        Err(format!(
            "ptxas fatal   : SM version specified by .target ({target}) is not what the device has, sm_{}{}\n",
            device.0, device.1
        ))
    };
    let Some(number) = target
        .strip_prefix("sm_")
        .or_else(|| target.strip_prefix("compute_"))
    else {
        return refuse();
    };
    let digits = number.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let Ok(value) = digits.parse::<u32>() else {
        return refuse();
    };
    let wanted = (value / 10, value % 10);
    let fits = match &number[digits.len()..] {
        "" => wanted <= device,
        "a" => wanted == device,
        "f" => wanted.0 == device.0 && wanted.1 <= device.1,
        _ => false,
    };
    if fits { Ok(()) } else { refuse() }
}

/// Loads and answers, with the logs that the caller asked for.
fn load_with_logs(
    driver: &mut Driver,
    module: Out<usize>,
    image: &[u8],
    logs: Option<(Logs, Out<usize>)>,
) -> Answer {
    let context = driver.context()?;
    module.check()?;
    let outcome = driver.load(context, image);
    if let Some((logs, values)) = logs {
        let error = outcome
            .as_ref()
            .err()
            .map_or("", |refusal| refusal.log.as_str());
        if let Some(log) = logs.error {
            log.write(error, values)?;
        }
        if let Some(log) = logs.info {
            log.write("", values)?;
        }
    }
    match outcome {
        Ok(handle) => module.set(handle),
        Err(refusal) => Err(refusal.code),
    }
}

pub(crate) fn read_file(name: Text) -> Answer<Vec<u8>> {
    fs::read(name.get()?).map_err(|_| Code::FILE_NOT_FOUND)
}

driver_api! {
    fn cuModuleLoadData(call, module: Out<usize>, image: Host) {
        let image = image.image()?;
        load_with_logs(call, module, &image, None)
    }

    fn cuModuleLoadDataEx(call, module: Out<usize>, image: Host, count: u32, options: In<u32>, values: Out<usize>) {
        let image = image.image()?;
        let logs = Logs::read(count, options, values)?;
        load_with_logs(call, module, &image, Some((logs, values)))
    }

    fn cuModuleLoad(call, module: Out<usize>, name: Text) {
        let image = read_file(name)?;
        let text = image.split(|byte| *byte == 0).next().unwrap_or_default();
        load_with_logs(call, module, text, None)
    }

    fn cuModuleUnload(call, module: usize) {
        let context = call.module(module)?.context;
        // Kernels of the module that are pending still run.
        let _ = call.synchronize_context(context);
        call.unload(module);
        Ok(())
    }

    fn cuModuleGetGlobal_v2(call, pointer: Out<u64>, bytes: Out<usize>, module: usize, name: Text) {
        let (address, size) = call.global(module, &name.get()?)?;
        pointer.set_if_wanted(address);
        bytes.set_if_wanted(size);
        Ok(())
    }

    fn cuModuleGetFunctionCount(call, count: Out<u32>, module: usize) {
        let kernels = call.module(module)?.program.kernels().len();
        count.set(u32::try_from(kernels).unwrap_or(u32::MAX))
    }

    fn cuModuleEnumerateFunctions(call, functions: Out<usize>, count: u32, module: usize) {
        let kernels = call.module(module)?.program.kernels().len();
        for index in 0..kernels.min(count as usize) {
            let function = call.function_of(module, index);
            functions.set_at(index, function)?;
        }
        Ok(())
    }

    fn cuModuleGetLoadingMode(call, mode: Out<u32>) {
        if !call.initialised {
            return Err(Code::NOT_INITIALIZED);
        }
        mode.set(EAGER)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_run_on_their_own_and_on_newer_devices() {
        for (target, fits) in [
            ("sm_75", true),
            ("sm_90", true),
            ("sm_90a", true),
            ("sm_80a", false),
            ("sm_100", false),
            ("sm_100a", false),
            ("sm_120f", false),
            ("gfx90a", false),
        ] {
            assert_eq!(check_target(target, (9, 0)).is_ok(), fits, "{target}");
        }
    }
}
