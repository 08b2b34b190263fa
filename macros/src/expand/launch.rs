//! The launch of a kernel: describe, check, pack; acquire, enqueue, finish.

use gridcall_ptx as ptx;
use proc_macro2::TokenStream;
use quote::{ToTokens, format_ident, quote_spanned};
use syn::{Ident, Type};

use super::{Signature, Subject, plain};
use crate::contract;
use crate::describe;
use crate::kernel::{Param, unraw};
use crate::span::{at, located, ours};
use crate::value::{self, Known, Shape, Taken};

impl Subject<'_> {
    /// The launch: describe, check, pack; acquire, enqueue, finish.
    ///
    /// ```text
    /// // check
    /// let __view2 = __call.read::<f32, _>(2, 4, &self.x)?;
    /// { let n = Int::from(self.n); let x = ViewOf(__view2); if (x.len() >= n) {} else { return Err(..); } }
    /// __call.disjoint(|| [(2, __view2, false), (3, __view3, true)])?;
    /// let mut __params = Params::<24>::zeroed();
    /// __params.set(0, &self.n);
    /// __params.set_pointer(8, __view2);
    /// Ok(__params)
    /// // see
    /// __arrays.read::<f32, _>(2, &self.x);
    /// __arrays.write::<f32, _>(3, &self.y);
    /// // run
    /// let __guard2 = __call.acquire::<f32, _>(2, &self.x)?;
    /// unsafe { __call.enqueue(__params) }?;
    /// let mut __end = __call.finish();
    /// __end.guard(2, __guard2);
    /// __end.result()
    /// ```
    pub(super) fn arguments(&self, signature: &Signature<'_>) -> TokenStream {
        let krate = self.krate;
        let cfgs = &self.outline.attrs.cfgs;
        let generics = signature.bounded_generics();
        let (ty, kernel_ty) = (signature.ty(), signature.kernel_ty());
        let arrays: Vec<usize> = self.arrays().collect();
        let written = arrays
            .iter()
            .any(|&index| self.param(index).taken.is_written_array());
        let mutability = written.then(|| quote_spanned! {ours()=> mut });
        let claims = self.claims();
        let describe = arrays.iter().map(|&index| self.describe_array(index));
        let functions = self.functions();
        let requires = self
            .kernel
            .requires
            .iter()
            .enumerate()
            .map(|(nth, requirement)| self.requirement(nth, requirement));
        let params = self.kernel.params.iter();
        let conditions = params.filter(|param| matches!(param.taken, Taken::Condition { .. }));
        let array_count = plain(arrays.len() + conditions.count());
        let disjoint = (written && arrays.len() > 1).then(|| self.disjoint(&arrays));
        let see = arrays.iter().map(|&index| self.see(index));
        let see = (!arrays.is_empty()).then(|| {
            quote_spanned! {ours()=>
                #[allow(clippy::all, clippy::pedantic)]
                fn see(&self, __arrays: &mut #krate::__private::Arrays) {
                    #(#see)*
                }
            }
        });
        let acquire = arrays.iter().map(|&index| self.acquire(index));
        let params_size = self.params_size();
        let pack = (0..self.kernel.params.len()).map(|index| self.pack(index));
        let finish = arrays.iter().map(|&index| {
            let (number, guard) = (plain(index), guard(index));
            quote_spanned! {ours()=> __end.guard(#number, #guard); }
        });
        // SAFETY (of the generated code): both methods take every step in order, and `enqueue` gets
        // all arguments described and acquired as declared, and packed as the PTX lays them out,
        // which the checks of this macro and the claims compared. That the declaration is true, its
        // block vouches; for an unsafe kernel they are reached through unsafe functions only.
        quote_spanned! {ours()=>
            #(#cfgs)*
            #[allow(deprecated)]
            unsafe impl #generics #krate::__private::Arguments for #ty {
                type Declared = #kernel_ty;
                type Params = #krate::__private::Params<#params_size>;
                const ARRAYS: ::core::primitive::usize = #array_count;
                #[inline(always)]
                #[allow(unused_mut, unused_parens, clippy::all, clippy::pedantic)]
                fn check<__P: #krate::__private::Purpose>(
                    &mut self,
                    __call: &#krate::__private::Call<'_, __P>,
                ) -> ::core::result::Result<Self::Params, __P::Stop> {
                    #claims
                    #functions
                    #(#describe)*
                    #(#requires)*
                    #disjoint
                    let mut __params = #krate::__private::Params::<#params_size>::zeroed();
                    #(#pack)*
                    ::core::result::Result::Ok(__params)
                }
                #see
                #[inline(always)]
                #[allow(unused_mut, clippy::all, clippy::pedantic)]
                unsafe fn run(
                    #mutability self,
                    __call: &#krate::__private::Call<'_>,
                    __params: &mut Self::Params,
                ) -> ::core::result::Result<(), #krate::LaunchError> {
                    #(#acquire)*
                    unsafe { __call.enqueue(__params) }?;
                    let mut __end = __call.finish();
                    #(#finish)*
                    __end.result()
                }
            }
        }
    }

    fn see(&self, index: usize) -> TokenStream {
        let param = self.param(index);
        let (field, number) = (&param.ident, plain(index));
        let elem = param.taken.elem();
        match &param.taken {
            Taken::Optional { .. } => quote_spanned! {ours()=>
                __arrays.read_optional::<#elem>(#number, self.#field);
            },
            taken if taken.is_written_array() => quote_spanned! {ours()=>
                __arrays.write::<#elem, _>(#number, &self.#field);
            },
            _ => quote_spanned! {ours()=>
                __arrays.read::<#elem, _>(#number, &self.#field);
            },
        }
    }

    fn param(&self, index: usize) -> &Param {
        &self.kernel.params[index]
    }

    fn arrays(&self) -> impl Iterator<Item = usize> {
        let params = self.kernel.params.iter().enumerate();
        params
            .filter(|(_, param)| param.taken.is_array())
            .map(|(index, _)| index)
    }

    /// Takes the addresses of functions, which must be of the kernel's module.
    fn functions(&self) -> TokenStream {
        let params = self.kernel.params.iter().enumerate();
        let functions = params.filter(|(_, param)| matches!(param.taken, Taken::Function { .. }));
        functions
            .map(|(index, param)| {
                let (field, address, number) = (&param.ident, view(index), plain(index));
                quote_spanned! {ours()=> let #address = __call.function(#number, self.#field)?; }
            })
            .collect()
    }

    fn describe_array(&self, index: usize) -> TokenStream {
        let param = self.param(index);
        let (field, view, number) = (&param.ident, view(index), plain(index));
        let align = self.required_align(index);
        let elem = param.taken.elem();
        let written = param.taken.is_written_array();
        match &param.taken {
            Taken::TensorMap { .. } if written => quote_spanned! {ours()=>
                let #view = __call.write_tensor_map::<#elem, _>(#number, &self.#field)?;
            },
            Taken::TensorMap { .. } => quote_spanned! {ours()=>
                let #view = __call.read_tensor_map::<#elem, _>(#number, &self.#field)?;
            },
            Taken::Texture { .. } => quote_spanned! {ours()=>
                let #view = __call.read_texture::<#elem, _>(#number, &self.#field)?;
            },
            Taken::Surface { .. } if written => quote_spanned! {ours()=>
                let #view = __call.write_surface::<#elem, _>(#number, &self.#field)?;
            },
            Taken::Surface { .. } => quote_spanned! {ours()=>
                let #view = __call.read_surface::<#elem, _>(#number, &self.#field)?;
            },
            Taken::Strided { rank, .. } if written => quote_spanned! {ours()=>
                let #view = __call.write_strided::<#elem, _, { #rank }>(#number, #align, &mut self.#field)?;
            },
            Taken::Strided { rank, .. } => quote_spanned! {ours()=>
                let #view = __call.read_strided::<#elem, _, { #rank }>(#number, #align, &self.#field)?;
            },
            Taken::Optional { .. } => quote_spanned! {ours()=>
                let #view = __call.read_optional::<#elem>(#number, #align, self.#field)?;
            },
            Taken::Slice { .. } if written => quote_spanned! {ours()=>
                let #view = __call.write::<#elem, _>(#number, #align, &mut self.#field)?;
            },
            _ => quote_spanned! {ours()=>
                let #view = __call.read::<#elem, _>(#number, #align, &self.#field)?;
            },
        }
    }

    /// The alignment that a call must find: the elements' own, that of `#[align]`, and that of
    /// `.ptr` in the PTX, which the compiler took as a promise.
    fn required_align(&self, index: usize) -> TokenStream {
        let param = self.param(index);
        let hint = self
            .entry
            .and_then(|entry| entry.params().get(index)?.pointer())
            .map_or(1, |pointer| pointer.align);
        let asked = param.align.unwrap_or(1).max(hint);
        match (&param.taken, param.taken.known_elem()) {
            (_, Some(elem)) => plain((asked as usize).max(elem.align)).to_token_stream(),
            (
                Taken::Slice { elem, .. } | Taken::Optional { elem } | Taken::Strided { elem, .. },
                None,
            ) => {
                let own = quote_spanned! {ours()=> ::core::mem::align_of::<#elem>() };
                let asked = plain(asked);
                quote_spanned! {ours()=> if #own < #asked { #asked } else { #own } }
            }
            _ => plain(asked).to_token_stream(),
        }
    }

    /// One `if`, in a scope where names mean what contracts speak of.
    fn requirement(&self, nth: usize, requirement: &TokenStream) -> TokenStream {
        let krate = self.krate;
        let mentioned = self
            .kernel
            .params
            .iter()
            .enumerate()
            .filter(|(_, param)| contract::mentions(requirement, &param.ident.to_string()));
        let (mut bindings, mut values, mut structs) = (TokenStream::new(), Vec::new(), Vec::new());
        for (index, param) in mentioned {
            let (ident, name) = (&param.ident, unraw(&param.ident));
            match &param.taken {
                Taken::Slice { .. }
                | Taken::Optional { .. }
                | Taken::Strided { .. }
                | Taken::TensorMap { .. }
                | Taken::Texture { .. }
                | Taken::Surface { .. } => {
                    let view = view(index);
                    let seen = match &param.taken {
                        Taken::Strided { .. } => "StridedOf",
                        Taken::TensorMap { .. } => "TensorOf",
                        Taken::Texture { .. } | Taken::Surface { .. } => "TextureOf",
                        _ => "ViewOf",
                    };
                    let seen = Ident::new(seen, ours());
                    bindings.extend(quote_spanned! {ours()=>
                        let #ident = #krate::__private::#seen(#view);
                    });
                    let (name, seen) = match &param.taken {
                        Taken::Strided { .. }
                        | Taken::TensorMap { .. }
                        | Taken::Texture { .. }
                        | Taken::Surface { .. } => (format!("the shape of {name}"), "shape"),
                        _ => (format!("{name}.len()"), "len"),
                    };
                    let seen = Ident::new(seen, ours());
                    values.push(quote_spanned! {ours()=> (#name, &#ident.#seen()) });
                }
                Taken::Value {
                    known: Some(Known { counts: true, .. }),
                    ..
                } => {
                    bindings.extend(quote_spanned! {ours()=>
                        let #ident: #krate::__private::Int = ::core::convert::Into::into(self.#ident);
                    });
                    // A copy, so that only a contract that does not hold puts it into memory.
                    values.push(quote_spanned! {ours()=> (#name, &{ #ident }) });
                }
                Taken::Value {
                    known:
                        Some(Known {
                            shape: Shape::Integer | Shape::Float,
                            ..
                        }),
                    ..
                } => {
                    bindings.extend(quote_spanned! {ours()=> let #ident = self.#ident; });
                    values.push(quote_spanned! {ours()=> (#name, &{ #ident }) });
                }
                Taken::Value { .. }
                | Taken::Condition { .. }
                | Taken::Pointer { .. }
                | Taken::Function { .. } => {
                    structs.push(ident);
                    bindings.extend(quote_spanned! {ours()=> let #ident = &self.#ident; });
                }
            }
        }
        let fields = contract::fields(requirement, &structs)
            .into_iter()
            .map(|field| {
                let name = describe::expr(&field);
                quote_spanned! {ours()=> (#name, &#krate::__private::Field(#field).shown()) }
            });
        values.extend(fields);
        let geometry = self.geometry(requirement, &mut values);
        let condition = contract::rewrite(requirement, &structs, krate);
        let nth = plain(nth);
        let any_field = (!structs.is_empty()).then(|| {
            quote_spanned! {ours()=>
                #[allow(unused_imports)]
                use #krate::__private::AnyField as _;
            }
        });
        quote_spanned! {ours()=>
            {
                #any_field
                #bindings
                #geometry
                if (#condition) {} else {
                    return ::core::result::Result::Err(__call.requirement(#nth, &[#(#values),*]));
                }
            }
        }
    }

    /// `grid`, `block` and `shared_mem_bytes`, where they are spoken of and are no parameters; each
    /// is told with the other values if the requirement does not hold.
    fn geometry(&self, requirement: &TokenStream, values: &mut Vec<TokenStream>) -> TokenStream {
        let krate = self.krate;
        let mut bindings = TokenStream::new();
        for (name, ty) in [
            ("grid", "Extents"),
            ("block", "Extents"),
            ("shared_mem_bytes", "Int"),
        ] {
            let Some(ident) = contract::mention(requirement, name) else {
                continue;
            };
            if self.kernel.params.iter().any(|param| param.ident == name) {
                continue;
            }
            let (method, ty) = (Ident::new(name, ours()), Ident::new(ty, ours()));
            bindings.extend(quote_spanned! {ours()=>
                let #ident: #krate::__private::#ty = ::core::convert::Into::into(__call.#method());
            });
            values.push(quote_spanned! {ours()=> (#name, &{ #ident }) });
        }
        bindings
    }

    fn disjoint(&self, arrays: &[usize]) -> TokenStream {
        let spans = arrays.iter().map(|&index| {
            let (number, view) = (plain(index), view(index));
            let written = self.param(index).taken.is_written_array();
            let span = match &self.param(index).taken {
                Taken::Strided { .. }
                | Taken::TensorMap { .. }
                | Taken::Texture { .. }
                | Taken::Surface { .. } => {
                    quote_spanned! {ours()=> #view.span() }
                }
                _ => quote_spanned! {ours()=> #view },
            };
            quote_spanned! {ours()=> (#number, #span, #written) }
        });
        quote_spanned! {ours()=> __call.disjoint(|| [#(#spans),*])?; }
    }

    fn acquire(&self, index: usize) -> TokenStream {
        let param = self.param(index);
        let (field, guard, number) = (&param.ident, guard(index), plain(index));
        let elem = param.taken.elem();
        match &param.taken {
            Taken::Optional { .. } => quote_spanned! {ours()=>
                let #guard = __call.acquire_optional::<#elem>(#number, self.#field)?;
            },
            taken if taken.is_written_array() => quote_spanned! {ours()=>
                let #guard = __call.acquire_mut::<#elem, _>(#number, &mut self.#field)?;
            },
            _ => quote_spanned! {ours()=>
                let #guard = __call.acquire::<#elem, _>(#number, &self.#field)?;
            },
        }
    }

    fn pack(&self, index: usize) -> TokenStream {
        let param = self.param(index);
        let field = &param.ident;
        let offset = self.layout(index).offset;
        match &param.taken {
            Taken::Slice { .. } | Taken::Optional { .. } => {
                let view = view(index);
                quote_spanned! {ours()=> __params.set_pointer(#offset, #view); }
            }
            Taken::Strided { .. }
            | Taken::TensorMap { .. }
            | Taken::Texture { .. }
            | Taken::Surface { .. } => {
                let view = view(index);
                quote_spanned! {ours()=> __params.set(#offset, #view.value()); }
            }
            Taken::Condition { .. } => {
                let number = plain(index);
                quote_spanned! {ours()=>
                    __params.set(#offset, &__call.condition(#number, self.#field)?);
                }
            }
            Taken::Value { known: None, ty } if self.entry.is_some() || self.later => {
                let set = set(index, ty);
                quote_spanned! {ours()=> #set(&mut __params, #offset, &self.#field); }
            }
            Taken::Function { .. } => {
                let address = view(index);
                quote_spanned! {ours()=> __params.set(#offset, &#address); }
            }
            Taken::Value { .. } | Taken::Pointer { .. } => {
                quote_spanned! {ours()=> __params.set(#offset, &self.#field); }
            }
        }
    }

    /// What this macro cannot know of the user's types, for the compiler to check.
    fn claims(&self) -> TokenStream {
        let params = self.kernel.params.iter().enumerate();
        params
            .map(|(index, param)| self.claim(index, param))
            .chain([self.heard.claims.clone()])
            .collect()
    }

    /// What needs no PTX: that a safe kernel takes no device pointers.
    fn claim_of_later(&self, index: usize, param: &Param, ty: &Type) -> TokenStream {
        let krate = located(self.krate, at(ty));
        let (kernel, name, number) = (
            unraw(&self.outline.ident),
            unraw(&param.ident),
            plain(index),
        );
        let (shown, safe) = (describe::ty(ty), self.outline.safe);
        let params_size = self.params_size();
        let set = set(index, ty);
        quote_spanned! {at(ty)=>
            const #set: fn(
                &mut #krate::__private::Params<#params_size>,
                ::core::primitive::usize,
                &#ty,
            ) = {
                #krate::__private::check_safe::<#ty>(#kernel, #number, #name, #shown, #safe);
                |__params, __offset, __value| {
                    #krate::__private::Params::<#params_size>::set::<#ty>(__params, __offset, __value);
                }
            };
        }
    }

    /// That the kernel calls a function by its type, as far as its code shows.
    fn claim_of_function(&self, index: usize, param: &Param, function: &Type) -> TokenStream {
        let krate = located(self.krate, at(function));
        let (kernel, name) = (unraw(&self.outline.ident), unraw(&param.ident));
        let (number, shown) = (plain(index), describe::ty(&param.ty));
        let calls = self.heard.calls.get(index).into_iter().flatten();
        let calls = calls.map(|call| call.tokens(self.krate));
        quote_spanned! {at(function)=>
            const _: () = #krate::__private::check_calls::<#function>(
                #kernel, #number, #name, #shown, &[#(#calls),*],
            );
        }
    }

    fn claim(&self, index: usize, param: &Param) -> TokenStream {
        let krate = self.krate;
        let (kernel, name, number) = (
            unraw(&self.outline.ident),
            unraw(&param.ident),
            plain(index),
        );
        match &param.taken {
            Taken::Value { known: None, ty } => {
                if self.later {
                    return self.claim_of_later(index, param, ty);
                }
                let Some(declared) = self.entry.and_then(|entry| entry.params().get(index)) else {
                    return TokenStream::new();
                };
                let class = Ident::new(class(declared.class()), ours());
                let shown = describe::ty(ty);
                let (size, align) = (plain(declared.size()), plain(declared.align()));
                let ptx = declared.to_string();
                let place = format!("{}:{}", self.file, declared.position().line);
                let safe = self.outline.safe;
                let params_size = self.params_size();
                let set = set(index, ty);
                let krate = located(krate, at(ty));
                // One constant, so that a type which is no argument is told of once.
                quote_spanned! {at(ty)=>
                    const #set: fn(
                        &mut #krate::__private::Params<#params_size>,
                        ::core::primitive::usize,
                        &#ty,
                    ) = {
                        #krate::__private::check_layout::<#ty>(#krate::__private::Expected {
                            kernel: #kernel,
                            index: #number,
                            param: #name,
                            ty: #shown,
                            size: #size,
                            align: #align,
                            class: #krate::__private::Class::#class,
                            ptx: #ptx,
                            place: #place,
                            safe: #safe,
                        });
                        |__params, __offset, __value| {
                            #krate::__private::Params::<#params_size>::set::<#ty>(__params, __offset, __value);
                        }
                    };
                }
            }
            Taken::Strided { elem, .. }
            | Taken::TensorMap { elem, .. }
            | Taken::Texture { elem } => {
                let Some(declared) = self.entry.and_then(|entry| entry.params().get(index)) else {
                    return TokenStream::new();
                };
                let class = Ident::new(class(declared.class()), ours());
                let shown = describe::ty(&param.ty);
                let (size, align) = (plain(declared.size()), plain(declared.align()));
                let ptx = declared.to_string();
                let place = format!("{}:{}", self.file, declared.position().line);
                let safe = self.outline.safe;
                let krate = located(krate, at(elem));
                let passed = match &param.taken {
                    Taken::Strided { rank, .. } => {
                        quote_spanned! {at(elem)=> #krate::Strided<#elem, { #rank }> }
                    }
                    Taken::Texture { .. } | Taken::Surface { .. } => {
                        quote_spanned! {at(elem)=> #krate::__private::Object }
                    }
                    _ => quote_spanned! {at(elem)=> #krate::__private::Descriptor },
                };
                quote_spanned! {at(elem)=>
                    const _: () = {
                        #krate::__private::check_element::<#elem>(#kernel, #number, #name);
                        #krate::__private::check_layout::<#passed>(
                            #krate::__private::Expected {
                                kernel: #kernel,
                                index: #number,
                                param: #name,
                                ty: #shown,
                                size: #size,
                                align: #align,
                                class: #krate::__private::Class::#class,
                                ptx: #ptx,
                                place: #place,
                                safe: #safe,
                            },
                        );
                    };
                }
            }
            Taken::Function { function, .. } => self.claim_of_function(index, param, function),
            Taken::Slice { elem, .. } | Taken::Optional { elem }
                if value::known(elem).is_none() =>
            {
                let krate = located(krate, at(elem));
                quote_spanned! {at(elem)=>
                    const _: () = #krate::__private::check_element::<#elem>(#kernel, #number, #name);
                }
            }
            _ => TokenStream::new(),
        }
    }
}

pub(super) fn class(class: ptx::Class) -> &'static str {
    match class {
        ptx::Class::Integer => "Integer",
        ptx::Class::Float => "Float",
        ptx::Class::Bits => "Bits",
        _ => "Bytes",
    }
}

fn view(index: usize) -> Ident {
    format_ident!("__view{index}", span = ours())
}

fn guard(index: usize) -> Ident {
    format_ident!("__guard{index}", span = ours())
}

/// What packs a value of a type that this macro does not know.
fn set(index: usize, ty: &Type) -> Ident {
    format_ident!("__SET{index}", span = at(ty))
}
