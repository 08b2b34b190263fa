//! Initial values: where each element goes.

use gridcall_ptx::{Constant, Error, Module, SymbolAddress, Value};

fn with_elements<T>(declaration: &str, look: impl FnOnce(Vec<(usize, Value<'_>)>) -> T) -> T {
    let text = format!(".version 9.5\n.target sm_90\n{declaration}");
    let module = Module::parse(&text).unwrap();
    let elements = module.variables()[0].elements(&text);
    let elements = elements.unwrap_or_else(|error| panic!("{error}\n{text}"));
    look(
        elements
            .into_iter()
            .map(|element| (element.offset, element.value))
            .collect(),
    )
}

fn integers(declaration: &str) -> Vec<(usize, i128)> {
    with_elements(declaration, |elements| {
        elements
            .into_iter()
            .map(|(offset, value)| match value {
                Value::Constant(constant) => (offset, constant.integer().unwrap()),
                other => panic!("{other:?}"),
            })
            .collect()
    })
}

fn error(declaration: &str) -> Error {
    let text = format!(".version 9.5\n.target sm_90\n{declaration}");
    match Module::parse(&text) {
        Ok(module) => match module.variables()[0].elements(&text) {
            Ok(elements) => panic!("{declaration} has {elements:?}"),
            Err(error) => error,
        },
        Err(error) => error,
    }
}

#[test]
fn scalars() {
    assert_eq!(integers(".global .u32 x = 42;"), [(0, 42)]);
    assert_eq!(integers(".global .s32 x = -(1 << 4);"), [(0, -16)]);
    assert_eq!(integers(".global .u32 x;"), []);
}

#[test]
fn fewer_values_than_elements() {
    assert_eq!(
        integers(".const .align 8 .u16 x[5] = {1, 2};"),
        [(0, 1), (2, 2)]
    );
    assert_eq!(integers(".const .u16 x[5] = {};"), []);
}

#[test]
fn arrays_of_arrays() {
    let nested = ".global .s32 x[3][2] = { {1,2}, {3}, {5} };";
    assert_eq!(integers(nested), [(0, 1), (4, 2), (8, 3), (16, 5)]);
    assert_eq!(integers(".global .u8 x[3][2] = {{}, {1}};"), [(2, 1)]);
    let deep = ".global .u8 x[2][2][2] = {{{1}, {2}}, {{3}, {4}}};";
    assert_eq!(integers(deep), [(0, 1), (2, 2), (4, 3), (6, 4)]);
    assert_eq!(
        integers(".global .u8 x[][3] = {{1}, {2, 3}};"),
        [(0, 1), (3, 2), (4, 3)]
    );
}

#[test]
fn vectors_are_one_dimension_more() {
    let vector = ".global .v4 .u32 x = {1, 2, 3, 4};";
    assert_eq!(integers(vector), [(0, 1), (4, 2), (8, 3), (12, 4)]);
    let array = ".global .v2 .u8 x[2] = {{1, 4}, {2, 3}};";
    assert_eq!(integers(array), [(0, 1), (1, 4), (2, 2), (3, 3)]);
}

#[test]
fn floats() {
    with_elements(".const .f32 x[3] = {1.0, 0f3F000000, .25};", |elements| {
        let values: Vec<_> = elements.into_iter().map(|(_, value)| value).collect();
        assert_eq!(
            values,
            [
                Value::Constant(Constant::F64(1.0_f64.to_bits())),
                Value::Constant(Constant::F32(0x3f00_0000)),
                Value::Constant(Constant::F64(0.25_f64.to_bits())),
            ]
        );
    });
}

#[test]
fn addresses() {
    with_elements(
        ".global .u64 x[6] = {foo, foo+4, foo-4, generic(bar), generic(bar+8)+8, generic};",
        |elements| {
            let address = |name, offset, generic| {
                Value::Address(SymbolAddress {
                    name,
                    offset,
                    generic,
                    mask: None,
                })
            };
            assert_eq!(
                elements,
                [
                    (0, address("foo", 0, false)),
                    (8, address("foo", 4, false)),
                    (16, address("foo", -4, false)),
                    (24, address("bar", 0, true)),
                    (32, address("bar", 16, true)),
                    (40, address("generic", 0, false)),
                ]
            );
        },
    );
}

#[test]
fn masks() {
    with_elements(
        ".global .u8 x[4] = {0xff(foo), 0xFF00(generic(foo)+4), 0xFF(1000 + 546), 0xFF00 (131187)};",
        |elements| {
            let address = |offset, generic, mask| {
                Value::Address(SymbolAddress {
                    name: "foo",
                    offset,
                    generic,
                    mask: Some(mask),
                })
            };
            assert_eq!(
                elements,
                [
                    (0, address(0, false, 0xff)),
                    (1, address(4, true, 0xff00)),
                    (2, Value::Constant(Constant::U64(0x0a))),
                    (3, Value::Constant(Constant::U64(0x00))),
                ]
            );
        },
    );
}

#[test]
fn errors() {
    for (declaration, shown) in [
        (
            ".global .u8 x[2] = 1;",
            "line 3, column 20: expected `{`, found `1`",
        ),
        (
            ".global .u8 x[] = {};",
            "line 3, column 21: expected a value in the braces before it, found `;`",
        ),
        (
            ".global .u8 x[2] = {1,};",
            "line 3, column 23: expected a number, found `}`",
        ),
        (
            ".global .u8 x[2] = {1 2};",
            "line 3, column 23: expected `,` or `}`, found `2`",
        ),
        (
            ".global .u8 x[2] = {1, 2, 3};",
            "line 3, column 27: expected `}`, there is room for 2, found `3`",
        ),
        (
            ".global .u8 x[2][2] = {1, 2};",
            "line 3, column 24: expected `{`, found `1`",
        ),
        (
            ".global .u8 x[2][2] = {{1, 2, 3}};",
            "line 3, column 31: expected `}`, there is room for 2, found `3`",
        ),
        (
            ".global .u8 x[2][2] = {{1}, {2}, {3}};",
            "line 3, column 34: expected `}`, there is room for 2, found `{`",
        ),
        (
            ".global .v4 .u32 x = {1, 2, 3};",
            "line 3, column 30: expected `,`, a vector has 4 values, found `}`",
        ),
        (
            ".global .u8 x[2] = {{1}};",
            "line 3, column 21: expected a number, found `{`",
        ),
        (
            ".global .u32 x = {1};",
            "line 3, column 18: expected a number, found `{`",
        ),
        (
            ".global .u8 x = 1 2;",
            "line 3, column 19: expected the end of the value, found `2`",
        ),
        (
            ".global .u64 x = foo+1.5;",
            "line 3, column 22: this is no offset of 64 bits",
        ),
        (
            ".global .u8 x = 0(foo);",
            "line 3, column 17: expected a mask such as `0xFF00`, found `0`",
        ),
        (
            ".global .u8 x = 0xFF(1.0);",
            "line 3, column 22: a mask is not for floating-point numbers",
        ),
        (
            ".global .u64 x = generic(3);",
            "line 3, column 26: expected a name, found `3`",
        ),
    ] {
        assert_eq!(error(declaration).to_string(), shown, "{declaration}");
    }
}

#[test]
fn another_text() {
    let text = ".version 9.5 .target sm_90 .global .u8 x = 1;";
    let module = Module::parse(text).unwrap();
    let error = module.variables()[0].elements("").unwrap_err();
    assert_eq!(
        error.message(),
        "this is not the text that the module was read from"
    );
}
