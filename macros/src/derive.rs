//! The derives: `KernelArg` for what is passed by value, `AsDeviceView` and `AsDeviceViewMut` for
//! arrays that wrap another.

use proc_macro2::{Span, TokenStream};
use quote::{ToTokens, format_ident, quote_spanned};

use syn::meta::ParseNestedMeta;
use syn::spanned::Spanned;
use syn::{
    Attribute, Data, DataEnum, DataStruct, DeriveInput, Fields, Generics, Ident, Index, LitStr,
    Member, Path, PointerMutability, Type,
};

use crate::describe;
use crate::kernel::unraw;
use crate::report::Report;
use crate::span::{at, located, ours};
use crate::value;

/// `#[derive(KernelArg)]`.
pub(crate) fn kernel_arg(input: &DeriveInput) -> TokenStream {
    let mut report = Report::default();
    let options = Options::read(&input.attrs, &mut report);
    let krate = &options.krate;
    let repr = Repr::read(&input.attrs, &mut report);
    let body = match &input.data {
        Data::Struct(data) => of_struct(input, data, &repr, &options, &mut report),
        Data::Enum(data) => of_enum(input, data, &repr, &options, &mut report),
        Data::Union(data) => {
            report.error(
                data.union_token,
                "unions are not supported yet: pass a struct that holds the bytes",
            );
            None
        }
    };
    if let Some(body) = body
        && report.is_empty()
    {
        return body;
    }
    let mut out = report.into_tokens(&[]);
    // So that what uses the type gives no errors of its own. What owns memory cannot be `Copy`, as
    // the trait asks, and would give one here.
    if !owns_memory(&input.data) {
        let refused = quote_spanned! {ours()=> #krate::__private::ArgLayout::REFUSED };
        let never = quote_spanned! {ours()=> loop {} };
        out.extend(implementation(input, krate, &[], &refused, &never));
    }
    out
}

/// The impl, with `bounds` beside the type's own.
fn implementation(
    input: &DeriveInput,
    krate: &Path,
    bounds: &[TokenStream],
    layout: &TokenStream,
    write: &TokenStream,
) -> TokenStream {
    let ident = &input.ident;
    let (impl_generics, ty_generics, clause) = input.generics.split_for_impl();
    let own = clause.iter().flat_map(|clause| &clause.predicates);
    // SAFETY (of the generated code): the layout is that of the fields in order, which `of_struct`
    // compares with Rust's, or that of the one integer; nothing but the fields is written, each
    // within its size.
    quote_spanned! {ours()=>
        #[automatically_derived]
        unsafe impl #impl_generics #krate::KernelArg for #ident #ty_generics
        where #(#own,)* #(#bounds,)*
        {
            const LAYOUT: #krate::__private::ArgLayout = #layout;
            #[inline]
            #[allow(unused_variables)]
            unsafe fn write(&self, __to: *mut ::core::primitive::u8) {
                #write
            }
        }
    }
}

fn of_struct(
    input: &DeriveInput,
    data: &DataStruct,
    repr: &Repr,
    options: &Options,
    report: &mut Report,
) -> Option<TokenStream> {
    check_struct(input, data, repr, report);
    if !report.is_empty() {
        return None;
    }
    let krate = &options.krate;
    let is_generic = !input.generics.params.is_empty();
    let fields: Vec<Field> = members(&data.fields)
        .zip(types(&data.fields))
        .enumerate()
        .map(|(index, (member, ty))| Field::new(index, member, ty, is_generic, krate))
        .collect();
    let layout = match fields.as_slice() {
        [only] if repr.transparent => only.layout.clone(),
        _ => layout(&input.ident, is_generic, &fields, krate),
    };
    let opaque = options
        .opaque
        .then(|| quote_spanned! {at(&input.ident)=> .opaque() });
    let name = match &options.name {
        Some(name) => Some(name.value()),
        // What is passed as its field is called as that; of a template, the name is not all.
        None => (!repr.transparent && !is_generic).then(|| unraw(&input.ident)),
    };
    let name = name.map(|name| quote_spanned! {at(&input.ident)=> .named(#name) });
    let layout = quote_spanned! {at(&input.ident)=> #layout #opaque #name };
    let writes = fields.iter().map(|Field { member, write, .. }| {
        quote_spanned! {ours()=>
            #write(&self.#member, __to.add(::core::mem::offset_of!(Self, #member)));
        }
    });
    let write = quote_spanned! {ours()=> unsafe { #(#writes)* } };
    if is_generic {
        let bounds: Vec<TokenStream> = fields.iter().map(|field| field.bound.clone()).collect();
        return Some(implementation(input, krate, &bounds, &layout, &write));
    }
    // A constant, so that the layout is compared although no kernel takes the struct yet.
    let constant = quote_spanned! {ours()=> __LAYOUT };
    let implementation = implementation(input, krate, &[], &constant, &write);
    let items = fields.iter().map(|field| &field.item);
    Some(quote_spanned! {ours()=>
        const _: () = {
            #(#items)*
            const __LAYOUT: #krate::__private::ArgLayout = #layout;
            #implementation
        };
    })
}

/// A field, and how its layout and the function that writes it are called.
///
/// A trait's bound is told of once for each body that needs it. So both come from one constant, or,
/// where a constant cannot name the type for its generics, from a bound of the impl.
struct Field {
    member: Member,
    layout: TokenStream,
    write: TokenStream,
    item: TokenStream,
    bound: TokenStream,
}

impl Field {
    fn new(index: usize, member: Member, ty: &Type, is_generic: bool, krate: &Path) -> Field {
        let span = at(ty);
        let krate = located(krate, span);
        let trait_layout = quote_spanned! {span=> <#ty as #krate::KernelArg>::LAYOUT };
        let trait_write = quote_spanned! {span=> <#ty as #krate::KernelArg>::write };
        let bound = quote_spanned! {span=> #ty: #krate::KernelArg };
        if is_generic {
            let (layout, write, item) = (trait_layout, trait_write, TokenStream::new());
            return Field {
                member,
                layout,
                write,
                item,
                bound,
            };
        }
        let name = format_ident!("__FIELD{index}", span = ours());
        let item = quote_spanned! {span=>
            const #name: (
                #krate::__private::ArgLayout,
                unsafe fn(&#ty, *mut ::core::primitive::u8),
            ) = (#trait_layout, #trait_write);
        };
        let layout = quote_spanned! {ours()=> #name.0 };
        let write = quote_spanned! {ours()=> (#name.1) };
        Field {
            member,
            layout,
            write,
            item,
            bound,
        }
    }

    fn name(&self) -> String {
        match &self.member {
            Member::Named(ident) => unraw(ident),
            Member::Unnamed(index) => index.index.to_string(),
        }
    }
}

fn layout(name: &Ident, is_generic: bool, fields: &[Field], krate: &Path) -> TokenStream {
    // Where the layouts differ, the error is at the struct's name.
    let span = at(name);
    let krate = located(krate, span);
    let this = if is_generic {
        quote_spanned! {span=> Self }
    } else {
        name.to_token_stream()
    };
    let fields = fields.iter().map(|field| {
        let (member, layout, shown) = (&field.member, &field.layout, field.name());
        quote_spanned! {span=>
            #krate::__private::ArgField {
                name: #shown,
                offset: ::core::mem::offset_of!(#this, #member),
                layout: #layout,
            }
        }
    });
    quote_spanned! {span=> #krate::__private::ArgLayout::of_struct::<#this>(&[#(#fields),*]) }
}

fn check_struct(input: &DeriveInput, data: &DataStruct, repr: &Repr, report: &mut Report) {
    let name = &input.ident;
    if data.fields.is_empty() {
        report.error(
            name,
            format!(
                "`{name}` has no fields: an empty struct has 1 byte in CUDA C++ and none in Rust, \
                 pass `u8` for it"
            ),
        );
    } else if !repr.c && !repr.transparent {
        report.error(
            name,
            format!(
                "`{name}` needs #[repr(C)] to be passed to a kernel: rustc may reorder its fields"
            ),
        );
    } else if repr.transparent && data.fields.len() != 1 {
        report.error(
            name,
            "write #[repr(C)]: a transparent struct has one field here",
        );
    }
    for ty in types(&data.fields) {
        check_field(ty, report);
    }
}

fn of_enum(
    input: &DeriveInput,
    data: &DataEnum,
    repr: &Repr,
    options: &Options,
    report: &mut Report,
) -> Option<TokenStream> {
    let krate = &options.krate;
    let name = &input.ident;
    if let Some(variant) = data
        .variants
        .iter()
        .find(|variant| !variant.fields.is_empty())
    {
        report.error(
            variant,
            "an enum with data has no counterpart in CUDA C++: pass a struct with #[repr(C)] that \
             holds a tag and the data",
        );
    } else if data.variants.is_empty() {
        report.error(name, "an enum without variants has no values to pass");
    } else if repr.integer.is_none() {
        report.error(
            name,
            format!(
                "`{name}` needs the size of CUDA's enum: #[repr(u32)] or #[repr(i32)] for a plain \
                 `enum`, #[repr(u8)] for `enum : unsigned char`"
            ),
        );
    }
    let integer = repr.integer.as_ref().filter(|_| report.is_empty())?;
    let integer = Ident::new(&integer.to_string(), ours());
    let integer = quote_spanned! {ours()=> ::core::primitive::#integer };
    let named = options
        .name
        .as_ref()
        .map(|name| quote_spanned! {ours()=> .named(#name) });
    let layout = quote_spanned! {ours()=> <#integer as #krate::KernelArg>::LAYOUT #named };
    let write = quote_spanned! {ours()=>
        let __value = *self as #integer;
        unsafe { <#integer as #krate::KernelArg>::write(&__value, __to) }
    };
    Some(implementation(input, krate, &[], &layout, &write))
}

/// What a field is that holds a device address, and how it is made.
fn device_pointer(elem: &str, written: bool) -> String {
    let (pointer, borrow) = if written {
        ("DevicePointerMut", "&mut array")
    } else {
        ("DevicePointer", "&array")
    };
    format!(
        "`gridcall::{pointer}<'a, {elem}>`, made of a device array by `{pointer}::of({borrow})?`"
    )
}

/// Refuses what means nothing on the device; the trait bound does the rest.
fn check_field(ty: &Type, report: &mut Report) {
    let message = match ty {
        Type::Group(group) => return check_field(&group.elem, report),
        Type::Paren(paren) => return check_field(&paren.elem, report),
        Type::Array(array) => return check_field(&array.elem, report),
        Type::Ptr(pointer) => format!(
            "a host pointer means nothing on the device: use {}",
            device_pointer(
                &describe::ty(&pointer.elem),
                matches!(pointer.mutability, PointerMutability::Mut(_))
            )
        ),
        Type::Reference(reference) => {
            let elem = describe::ty(value::slice_element(&reference.elem));
            format!(
                "a host pointer means nothing on the device: use {}, or hold the value itself",
                device_pointer(&elem, reference.mutability.is_some())
            )
        }
        Type::Path(_) if value::generic_of(ty, &OWNERS).is_some() => format!(
            "`{}` is a handle of the host: use {}",
            describe::ty(ty),
            device_pointer("T", false)
        ),
        Type::Path(_)
            if ["String", "str"]
                .iter()
                .any(|name| value::is_named(ty, name)) =>
        {
            "text is host memory: copy its bytes to the device and pass them as an array".to_owned()
        }
        Type::Path(_) if value::is_named(ty, "char") => {
            "`char` is not allowed: use `u32` for a character's number, or `u8` or `i8` for C's \
             `char`"
                .to_owned()
        }
        Type::FnPtr(_) => "a function pointer of the host means nothing on the device".to_owned(),
        Type::Path(_) if value::device_fn(ty).is_some() => value::NO_FUNCTIONS.to_owned(),
        Type::Tuple(_) => "a tuple is not allowed, as rustc may reorder its fields: use a struct \
                           with #[repr(C)] and #[derive(KernelArg)]"
            .to_owned(),
        _ => return,
    };
    report.error(ty, message);
}

/// Types that own memory or borrow it from the host.
const OWNERS: [&str; 7] = [
    "Vec",
    "Box",
    "Rc",
    "Arc",
    "CudaSlice",
    "CudaView",
    "CudaViewMut",
];

fn owns_memory(data: &Data) -> bool {
    let Data::Struct(data) = data else {
        return false;
    };
    types(&data.fields).any(|ty| {
        value::generic_of(ty, &OWNERS).is_some()
            || value::is_named(ty, "String")
            || matches!(ty, Type::Reference(reference) if reference.mutability.is_some())
    })
}

/// What `#[repr(..)]` says.
#[derive(Default)]
struct Repr {
    c: bool,
    transparent: bool,
    integer: Option<Ident>,
}

impl Repr {
    fn read(attrs: &[Attribute], report: &mut Report) -> Repr {
        let mut repr = Repr::default();
        for attr in attrs.iter().filter(|attr| attr.path().is_ident("repr")) {
            // What is no repr at all is for rustc to tell.
            let _ = attr.parse_nested_meta(|meta| {
                if meta.path.is_ident("C") {
                    repr.c = true;
                } else if meta.path.is_ident("transparent") {
                    repr.transparent = true;
                } else if meta.path.is_ident("packed") {
                    report.error(
                        &meta.path,
                        "#[repr(packed)] is not supported yet: declare the struct without it and \
                         its fields as arrays of bytes, `[u8; 4]` and `to_ne_bytes()`",
                    );
                } else if let Some(ident) = meta.path.get_ident()
                    && value::known(&syn::parse_quote!(#ident)).is_some()
                {
                    repr.integer = Some(ident.clone());
                }
                if meta.input.peek(syn::token::Paren) {
                    let arguments;
                    syn::parenthesized!(arguments in meta.input);
                    arguments.parse::<TokenStream>()?;
                }
                Ok(())
            });
        }
        repr
    }
}

/// `#[derive(AsDeviceView)]`.
pub(crate) fn as_device_view(input: &DeriveInput) -> TokenStream {
    view(input, "AsDeviceView", |krate, view, field, element| {
        quote_spanned! {ours()=>
            #[inline]
            fn describe(
                &self,
            ) -> ::core::result::Result<#krate::View<'_>, #krate::ViewError> {
                #view::<#element>::describe(&self.#field)
            }
            #[inline]
            fn acquire<'__v>(
                &'__v self,
                __stream: #krate::StreamRef<'__v>,
            ) -> ::core::result::Result<#krate::Guard<'__v>, #krate::ViewError> {
                #view::<#element>::acquire(&self.#field, __stream)
            }
            #[inline(always)]
            fn describe_strided(
                &self,
            ) -> ::core::result::Result<#krate::View<'_>, #krate::ViewError> {
                #view::<#element>::describe_strided(&self.#field)
            }
            #[inline(always)]
            fn describe_tracked(
                &self,
                __tracking: &#krate::Tracking<'_>,
            ) -> ::core::result::Result<#krate::View<'_>, #krate::ViewError> {
                #view::<#element>::describe_tracked(&self.#field, __tracking)
            }
            fn make_contiguous(&self) -> &'static str {
                #view::<#element>::make_contiguous(&self.#field)
            }
        }
    })
}

/// `#[derive(AsDeviceViewMut)]`.
pub(crate) fn as_device_view_mut(input: &DeriveInput) -> TokenStream {
    view(input, "AsDeviceViewMut", |krate, view, field, element| {
        quote_spanned! {ours()=>
            #[inline]
            fn describe_mut(
                &self,
            ) -> ::core::result::Result<#krate::View<'_>, #krate::ViewError> {
                #view::<#element>::describe_mut(&self.#field)
            }
            #[inline]
            fn acquire_mut<'__v>(
                &'__v mut self,
                __stream: #krate::StreamRef<'__v>,
            ) -> ::core::result::Result<#krate::Guard<'__v>, #krate::ViewError> {
                #view::<#element>::acquire_mut(&mut self.#field, __stream)
            }
            #[inline(always)]
            fn describe_strided_mut(
                &self,
            ) -> ::core::result::Result<#krate::View<'_>, #krate::ViewError> {
                #view::<#element>::describe_strided_mut(&self.#field)
            }
            #[inline(always)]
            fn describe_mut_tracked(
                &self,
                __tracking: &#krate::Tracking<'_>,
            ) -> ::core::result::Result<#krate::View<'_>, #krate::ViewError> {
                #view::<#element>::describe_mut_tracked(&self.#field, __tracking)
            }
            fn make_contiguous_mut(&self) -> &'static str {
                #view::<#element>::make_contiguous_mut(&self.#field)
            }
        }
    })
}

/// An impl for every element type that the wrapped array has, with these methods.
fn view(
    input: &DeriveInput,
    name: &str,
    methods: impl FnOnce(&Path, &TokenStream, &Member, &Ident) -> TokenStream,
) -> TokenStream {
    let mut report = Report::default();
    let krate = crate_of_view(&input.attrs, &mut report);
    let field = wrapped(input, name, &mut report);
    let Some((field, ty)) = field.filter(|_| report.is_empty()) else {
        return report.into_tokens(&[]);
    };
    let element = format_ident!("__T", span = ours());
    let name = Ident::new(name, ours());
    let view = quote_spanned! {ours()=> #krate::#name };
    let methods = methods(&krate, &view, &field, &element);
    let bound = {
        let span = ty.span().resolved_at(ours());
        quote_spanned! {span=> #ty: #krate::#name<#element> }
    };
    let ident = &input.ident;
    let (_, ty_generics, _) = input.generics.split_for_impl();
    let generics = with_bound(&input.generics, &element, &bound);
    let (impl_generics, _, clause) = generics.split_for_impl();
    // SAFETY (of the generated code): forwards to the field, which `self` owns: while `self` is
    // neither dropped nor mutated, nor is the field.
    quote_spanned! {ours()=>
        #[automatically_derived]
        unsafe impl #impl_generics #view<#element> for #ident #ty_generics #clause {
            #methods
        }
    }
}

fn with_bound(generics: &Generics, element: &Ident, bound: &TokenStream) -> Generics {
    let mut generics = generics.clone();
    generics.params.push(syn::parse_quote!(#element));
    generics
        .make_where_clause()
        .predicates
        .push(syn::parse_quote!(#bound));
    generics
}

/// The field that is the array: the only one, or the one marked `#[view]`.
fn wrapped<'a>(
    input: &'a DeriveInput,
    name: &str,
    report: &mut Report,
) -> Option<(Member, &'a Type)> {
    let Data::Struct(data) = &input.data else {
        report.error(
            &input.ident,
            format!("only a struct can derive {name}: it forwards to the field that is the array"),
        );
        return None;
    };
    let is_marked = |attrs: &[Attribute]| attrs.iter().any(|attr| attr.path().is_ident("view"));
    let marked: Vec<usize> = data
        .fields
        .iter()
        .enumerate()
        .filter(|(_, field)| is_marked(&field.attrs))
        .map(|(index, _)| index)
        .collect();
    let index = match (marked.as_slice(), data.fields.len()) {
        ([index], _) => *index,
        ([], 1) => 0,
        ([], 0) => {
            report.error(
                &input.ident,
                format!("{name} needs a field that is a device array"),
            );
            return None;
        }
        ([], _) => {
            report.error(&input.ident, "mark the field that is the array: `#[view]`");
            return None;
        }
        ([_, second, ..], _) => {
            let field = data.fields.iter().nth(*second);
            report.error(field, "a second `#[view]`: one field is the array");
            return None;
        }
    };
    members(&data.fields).zip(types(&data.fields)).nth(index)
}

fn members(fields: &Fields) -> impl Iterator<Item = Member> {
    fields
        .iter()
        .enumerate()
        .map(|(index, field)| match &field.ident {
            Some(ident) => Member::Named(ident.clone()),
            None => {
                let index = u32::try_from(index).unwrap_or(u32::MAX);
                Member::Unnamed(Index {
                    index,
                    span: Span::mixed_site(),
                })
            }
        })
}

fn types(fields: &Fields) -> impl Iterator<Item = &Type> {
    fields.iter().map(|field| &field.ty)
}

/// What stands in `#[kernel_arg(..)]`.
struct Options {
    krate: Path,
    /// Whether the struct stands for one of other fields, such as a union.
    opaque: bool,
    /// What C++ calls the struct, if it is not what Rust does.
    name: Option<LitStr>,
}

impl Options {
    fn read(attrs: &[Attribute], report: &mut Report) -> Options {
        let mut options = Options {
            krate: syn::parse_quote!(::gridcall),
            opaque: false,
            name: None,
        };
        nested(attrs, "kernel_arg", report, |meta| {
            if meta.path.is_ident("crate") {
                options.krate = meta.value()?.call(Path::parse_mod_style)?;
            } else if meta.path.is_ident("opaque") {
                options.opaque = true;
            } else if meta.path.is_ident("name") {
                options.name = Some(meta.value()?.parse()?);
            } else {
                let message = "the options are `kernel_arg(crate = path)`, `kernel_arg(name = \"ns::Name\")` for \
                               what C++ calls the struct, and `kernel_arg(opaque)` for a struct \
                               whose fields are not those of its counterpart";
                return Err(syn::Error::new_spanned(&meta.path, message));
            }
            Ok(())
        });
        options
    }
}

/// `gridcall`, or the path in `#[view(crate = path)]`.
fn crate_of_view(attrs: &[Attribute], report: &mut Report) -> Path {
    let mut krate: Path = syn::parse_quote!(::gridcall);
    nested(attrs, "view", report, |meta| {
        if meta.path.is_ident("crate") {
            krate = meta.value()?.call(Path::parse_mod_style)?;
            return Ok(());
        }
        let message = "the only option is `view(crate = path)`";
        Err(syn::Error::new_spanned(&meta.path, message))
    });
    krate
}

fn nested(
    attrs: &[Attribute],
    attribute: &str,
    report: &mut Report,
    mut read: impl FnMut(ParseNestedMeta) -> syn::Result<()>,
) {
    for attr in attrs.iter().filter(|attr| attr.path().is_ident(attribute)) {
        report.note(attr.parse_nested_meta(&mut read));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn errors(source: &str) -> String {
        let out = kernel_arg(&syn::parse_str(source).unwrap());
        let out = out.to_string();
        out.split("compile_error !").skip(1).collect()
    }

    #[test]
    fn a_struct_is_written_field_by_field() {
        let input =
            syn::parse_str("#[repr(C)] struct P { kind: u8, at: Point, r#type: u32 }").unwrap();
        let out = prettyplease::unparse(&syn::parse2(kernel_arg(&input)).unwrap());
        let out: String = out.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(
            out.contains("unsafe impl ::gridcall::KernelArg for P"),
            "{out}"
        );
        assert!(
            out.contains(
                "name: \"at\", offset: ::core::mem::offset_of!(P, at), layout: __FIELD1.0,"
            ),
            "{out}"
        );
        assert!(
            out.contains("name: \"type\", offset: ::core::mem::offset_of!(P, r#type),"),
            "{out}"
        );
        assert!(!out.contains("where"), "{out}");
    }

    #[test]
    fn a_generic_struct_has_bounds() {
        let source =
            "#[repr(C)] struct Table<'a, T: Copy> where T: Send { data: Pointer<'a, T>, len: u32 }";
        let out = kernel_arg(&syn::parse_str(source).unwrap());
        let out = prettyplease::unparse(&syn::parse2(out).unwrap());
        let out: String = out.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(
            out.contains("impl<'a, T: Copy> ::gridcall::KernelArg for Table<'a, T>"),
            "{out}"
        );
        assert!(
            out.contains("T: Send, Pointer<'a, T>: ::gridcall::KernelArg"),
            "{out}"
        );
        assert!(!out.contains("const _"), "{out}");
    }

    #[test]
    fn a_missing_repr_is_told() {
        assert!(errors("struct P { a: u8 }").contains("`P` needs #[repr(C)]"));
        assert!(errors("#[repr(align(4))] struct P { a: u8 }").contains("`P` needs #[repr(C)]"));
        assert_eq!(errors("#[repr(C, align(16))] struct P { a: u8 }"), "");
        assert_eq!(errors("#[repr(transparent)] struct P(f32);"), "");
    }

    #[test]
    fn fields_of_the_host_are_refused() {
        for (ty, cure) in [
            ("*const f32", "DevicePointer<'a, f32>"),
            ("*mut f32", "DevicePointerMut<'a, f32>"),
            ("&'a [f32]", "DevicePointer::of(&array)"),
            ("&'a mut [f32]", "DevicePointerMut::of(&mut array)"),
            ("Vec<f32>", "handle of the host"),
            ("Box<f32>", "handle of the host"),
            ("String", "text is host memory"),
            ("fn(u8)", "function pointer"),
            ("char", "use `u32`"),
            ("(u8, u32)", "tuple"),
            ("[*const u8; 2]", "host pointer"),
        ] {
            let source = format!("#[repr(C)] struct P<'a> {{ a: {ty}, b: &'a u8 }}");
            assert!(errors(&source).contains(cure), "{ty}: {}", errors(&source));
        }
    }

    #[test]
    fn every_wrong_field_is_told() {
        let found = errors("struct P { a: char, b: String }");
        assert_eq!(found.matches('"').count(), 2 * 3, "{found}");
    }

    #[test]
    fn enums_need_a_size() {
        assert_eq!(errors("#[repr(u8)] enum Mode { A, B }"), "");
        assert!(errors("enum Mode { A, B }").contains("#[repr(u32)]"));
        assert!(errors("#[repr(C)] enum Mode { A, B }").contains("#[repr(u32)]"));
        assert!(errors("#[repr(u8)] enum Mode { A(u8), B }").contains("a tag"));
        assert!(errors("#[repr(u8)] enum Mode {}").contains("no values"));
        assert!(errors("#[repr(C)] union U { a: u8 }").contains("not supported yet"));
    }

    #[test]
    fn packed_and_empty_structs_are_refused() {
        assert!(errors("#[repr(C, packed)] struct P { a: u8 }").contains("not supported yet"));
        assert!(errors("#[repr(C, packed(2))] struct P { a: u8 }").contains("not supported yet"));
        assert!(errors("#[repr(C)] struct P;").contains("1 byte"));
    }

    #[test]
    fn views_forward_to_one_field() {
        let view = |source: &str| as_device_view(&syn::parse_str(source).unwrap()).to_string();
        let out = view("struct Image<A> where A: Sized { #[view] pixels: A, width: u32 }");
        let out = prettyplease::unparse(&syn::parse_str(&out).unwrap());
        assert!(
            out.contains("unsafe impl<A, __T> ::gridcall::AsDeviceView<__T> for Image<A>"),
            "{out}"
        );
        assert!(out.contains("A: ::gridcall::AsDeviceView<__T>"), "{out}");
        assert!(out.contains("&self.pixels"), "{out}");
        assert!(view("struct Samples(CudaSlice<f32>);").contains("& self . 0"));
        assert!(view("struct Two(A, B);").contains("mark the field"));
        assert!(view("struct Two(#[view] A, #[view] B);").contains("a second"));
        assert!(view("enum E { A }").contains("only a struct"));
    }

    #[test]
    fn the_crate_has_the_users_name() {
        let input =
            syn::parse_str("#[kernel_arg(crate = facade::gpu)] #[repr(C)] struct P { a: u8 }");
        assert!(
            kernel_arg(&input.unwrap())
                .to_string()
                .contains("facade :: gpu :: KernelArg")
        );
    }
}
