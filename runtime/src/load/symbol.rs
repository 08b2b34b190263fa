//! The variables of modules.

use std::{
    ffi::{CString, c_uint},
    sync::Arc,
};

use cudarc::driver::{CudaContext, sys};

use super::Module;
use crate::{
    declaration::{StaticDeclaration, Variable},
    driver::{Driver, DriverCode},
    error::{LoadError, LoadErrorKind},
    symbol::LoadedSymbol,
    variant,
};

impl LoadedSymbol {
    /// Loads the symbol; its module, if another declaration has not loaded it already. The context
    /// must be current.
    pub(crate) fn load(
        declaration: &'static StaticDeclaration,
        driver: &'static Driver,
        context: &Arc<CudaContext>,
    ) -> Result<LoadedSymbol, LoadError> {
        let name = declaration.name;
        let images: Vec<_> = declaration
            .variants
            .iter()
            .map(|variable| variable.image)
            .collect();
        if let Some(absent) = images.iter().find(|image| image.version == (0, 0)) {
            let (kernel, path) = (name, absent.path);
            let absent = LoadErrorKind::SignaturesOnly { kernel, path };
            return Err(of_symbol(name, absent.into()));
        }
        let found = variant::best(name, &images, driver, context).and_then(|best| {
            let &Variable { image, symbol, .. } = &declaration.variants[best];
            let module = Module::shared(name, image, driver, context)?;
            Ok((module, symbol))
        });
        let (module, symbol) = found.map_err(|error| of_symbol(name, error))?;
        let path = module.name.clone();
        LoadedSymbol::from_module(declaration, context, module, symbol, &path)
    }

    /// Finds the symbol in a module that is loaded in this context, which is current.
    pub(crate) fn from_module(
        declaration: &'static StaticDeclaration,
        context: &Arc<CudaContext>,
        module: Arc<Module>,
        symbol: &str,
        path: &str,
    ) -> Result<LoadedSymbol, LoadError> {
        let name = declaration.name;
        let mismatch = |message| LoadErrorKind::Symbol { name, message };
        let not_there = || {
            mismatch(format!(
                "the driver finds no variable `{symbol}` in `{path}`"
            ))
        };
        let c_name = CString::new(symbol).map_err(|_| not_there())?;
        let (mut pointer, mut bytes) = (0, 0);
        // SAFETY: the module is loaded, the name is a C string, both places take an answer.
        let code = unsafe {
            sys::cuModuleGetGlobal_v2(
                &raw mut pointer,
                &raw mut bytes,
                module.handle,
                c_name.as_ptr(),
            )
        };
        match code {
            sys::CUresult::CUDA_SUCCESS => {}
            sys::CUresult::CUDA_ERROR_NOT_FOUND => return Err(not_there().into()),
            code => {
                let code = DriverCode(code as c_uint);
                if code.breaks_context() {
                    return Err(LoadErrorKind::Broken(code).into());
                }
                return Err(mismatch(format!("cuModuleGetGlobal failed: {code}")).into());
            }
        }
        let declared = declaration.layout.size;
        if bytes != declared {
            let message = format!(
                "it is `{}` ({declared} bytes), but `{symbol}` in `{path}` has {bytes} bytes",
                declaration.ty
            );
            return Err(mismatch(message).into());
        }
        let uses = if declaration.mutable {
            let tracker = module.claims.track(symbol, context).map_err(mismatch)?;
            Some([(tracker.clone(), false), (tracker, true)])
        } else {
            let by = format!("`static {name}`");
            module.claims.keep(symbol, &by).map_err(mismatch)?;
            None
        };
        Ok(LoadedSymbol {
            name,
            pointer,
            uses,
            module,
        })
    }
}

/// What is wrong with a module, told of a symbol in it and not of a kernel.
#[cold]
fn of_symbol(name: &'static str, error: LoadError) -> LoadError {
    let text = error.to_string();
    match text.strip_prefix(&format!("kernel `{name}`: ")) {
        Some(message) => LoadErrorKind::Symbol {
            name,
            message: message.to_owned(),
        }
        .into(),
        None => error,
    }
}
