//! The code of a body: one short text for each form.

use gridcall_ptx::{
    Address, Base, Code, Constant, Error, Guard, Instruction, Linkage, Module, NameRange, Operand,
    ScalarType, SourcePlace, StateSpace, Statement,
};

const HEAD: &str = ".version 9.5\n.target sm_90\n.entry k()\n{\n";

fn with_code<T>(body: &str, look: impl FnOnce(&Code<'_>) -> T) -> T {
    let text = format!("{HEAD}{body}\n}}\n");
    let module = Module::parse(&text).unwrap();
    let code = module.entries()[0].body().unwrap().parse(&text);
    look(&code.unwrap_or_else(|error| panic!("{error}\n{text}")))
}

fn with_instruction<T>(text: &str, look: impl FnOnce(&Instruction<'_>) -> T) -> T {
    with_code(text, |code| {
        let [Statement::Instruction(instruction)] = code.statements() else {
            panic!("one instruction in {text}: {code:?}")
        };
        look(instruction)
    })
}

fn assert_operands(text: &str, operands: &[Operand<'_>]) {
    with_instruction(text, |instruction| {
        assert_eq!(instruction.operands, operands, "{text}");
    });
}

fn assert_constant(text: &str, constant: Constant) {
    assert_operands(&format!("mov.b64 {text};"), &[Operand::Constant(constant)]);
}

fn error(body: &str) -> Error {
    let text = format!("{HEAD}{body}\n}}\n");
    let module = Module::parse(&text).unwrap();
    module.entries()[0]
        .body()
        .unwrap()
        .parse(&text)
        .unwrap_err()
}

fn at(name: &str, offset: i64) -> Address<'_> {
    Address {
        base: Base::Name(name),
        offset,
        unified: false,
    }
}

mod instructions {
    use super::*;

    #[test]
    fn opcode_modifiers_and_position() {
        with_instruction(
            "\n  ld.global.nc.L1::no_allocate.L2::128B.v4.f32 %f1, [%rd1];",
            |load| {
                assert_eq!(load.opcode, "ld");
                assert_eq!(
                    load.modifiers,
                    ["global", "nc", "L1::no_allocate", "L2::128B", "v4", "f32"]
                );
                assert_eq!(load.position.to_string(), "6:3");
                assert_eq!(load.guard, None);
            },
        );
        with_instruction(
            "tcgen05.ld.sync.aligned.16x64b.x2.b32 {%r0, %r1}, [%r2];",
            |load| {
                assert_eq!(
                    load.modifiers,
                    ["ld", "sync", "aligned", "16x64b", "x2", "b32"]
                );
            },
        );
        with_instruction("add .cc /* spaced */ .u32\n\t%r1, %r2, %r3;", |add| {
            assert_eq!(
                (add.opcode, add.modifiers.as_slice()),
                ("add", ["cc", "u32"].as_slice())
            );
            assert_eq!(add.operands.len(), 3);
        });
        with_instruction("ret;", |ret| {
            assert_eq!(
                (ret.opcode, ret.modifiers.len(), ret.operands.len()),
                ("ret", 0, 0)
            );
        });
    }

    #[test]
    fn guards() {
        let guard = |text: &str| {
            with_instruction(text, |bra| {
                assert_eq!(bra.opcode, "bra");
                assert_eq!(bra.operands, [Operand::Name("$L__BB0_2")]);
                bra.guard
                    .map(|guard| (guard.negated, guard.register.to_owned()))
            })
        };
        assert_eq!(
            guard("@%p1 bra $L__BB0_2;"),
            Some((false, "%p1".to_owned()))
        );
        assert_eq!(
            guard("@!%p1 bra.uni $L__BB0_2;"),
            Some((true, "%p1".to_owned()))
        );
        assert_eq!(guard("@ ! p bra $L__BB0_2;"), Some((true, "p".to_owned())));
        assert_eq!(guard("bra $L__BB0_2;"), None);
        with_instruction("@%p1 ret;", |ret| {
            assert_eq!(
                ret.guard,
                Some(Guard {
                    negated: false,
                    register: "%p1"
                })
            );
            assert_eq!(ret.position.to_string(), "5:1");
        });
    }
}

mod operands {
    use super::*;
    use Operand::{
        Bracket, Component, Element, List, Name, Negative, Not, Offset, Pair, Sink, Vector,
    };

    #[test]
    fn names_and_their_parts() {
        assert_operands(
            "mov.u32 %r1, %tid.x;",
            &[
                Name("%r1"),
                Component {
                    name: "%tid",
                    component: "x",
                },
            ],
        );
        assert_operands(
            "vadd.s32.u32.s32 a, %r2.b0, -%r3.h1;",
            &[
                Name("a"),
                Component {
                    name: "%r2",
                    component: "b0",
                },
                Negative(Box::new(Component {
                    name: "%r3",
                    component: "h1",
                })),
            ],
        );
        assert_operands(
            "mov.u64 %rd1, table+8;",
            &[
                Name("%rd1"),
                Offset {
                    name: "table",
                    offset: 8,
                },
            ],
        );
    }

    #[test]
    fn addresses() {
        for (text, base, offset) in [
            ("[%rd1]", Base::Name("%rd1"), 0),
            ("[ %rd1 + 0 ]", Base::Name("%rd1"), 0),
            ("[%rd1+16]", Base::Name("%rd1"), 16),
            ("[%rd1+-8]", Base::Name("%rd1"), -8),
            ("[%rd1-8]", Base::Name("%rd1"), -8),
            ("[s+4*(2+1)-2]", Base::Name("s"), 10),
            ("[s-4+2]", Base::Name("s"), -2),
            ("[k_param_0]", Base::Name("k_param_0"), 0),
            ("[0x1000]", Base::Immediate(Constant::S64(0x1000)), 0),
        ] {
            let address = Operand::Address(Address {
                base,
                offset,
                unified: false,
            });
            assert_operands(&format!("ld.u32 {text};"), &[address]);
        }
        assert_operands(
            "ld.f32 %f1, [%rd1+4].unified, %rd2;",
            &[
                Name("%f1"),
                Operand::Address(Address {
                    base: Base::Name("%rd1"),
                    offset: 4,
                    unified: true,
                }),
                Name("%rd2"),
            ],
        );
    }

    #[test]
    fn array_elements() {
        assert_operands(
            "ld.u32 s, a[3];",
            &[
                Name("s"),
                Element {
                    name: "a",
                    index: Address {
                        base: Base::Immediate(Constant::S64(3)),
                        offset: 0,
                        unified: false,
                    },
                },
            ],
        );
        assert_operands(
            "ld.u32 s, a[%r1+1];",
            &[
                Name("s"),
                Element {
                    name: "a",
                    index: at("%r1", 1),
                },
            ],
        );
    }

    #[test]
    fn vectors() {
        assert_operands(
            "mov.b64 %rd1, {%r1, %r2};",
            &[Name("%rd1"), Vector(vec![Name("%r1"), Name("%r2")])],
        );
        assert_operands(
            "mov.b64 {_, %r2}, %rd1;",
            &[Vector(vec![Sink, Name("%r2")]), Name("%rd1")],
        );
        assert_operands(
            "st.b32 [ %rd17 + 0 ], { %r17 };",
            &[Operand::Address(at("%rd17", 0)), Vector(vec![Name("%r17")])],
        );
    }

    #[test]
    fn predicates() {
        assert_operands(
            "setp.lt.and.s32 %p1|%p2, %r1, 0, !%p3;",
            &[
                Pair("%p1", "%p2"),
                Name("%r1"),
                Operand::Constant(Constant::S64(0)),
                Not(Box::new(Name("%p3"))),
            ],
        );
        assert_operands(
            "elect.sync _|%p1, -1;",
            &[Pair("_", "%p1"), Operand::Constant(Constant::S64(-1))],
        );
    }

    #[test]
    fn calls() {
        assert_operands(
            "call.uni (retval0), vprintf, (param0, param1);",
            &[
                List(vec![Name("retval0")]),
                Name("vprintf"),
                List(vec![Name("param0"), Name("param1")]),
            ],
        );
        assert_operands(
            "call %rd1, (1, (2)), prototype_0;",
            &[
                Name("%rd1"),
                List(vec![
                    Operand::Constant(Constant::S64(1)),
                    List(vec![Operand::Constant(Constant::S64(2))]),
                ]),
                Name("prototype_0"),
            ],
        );
        assert_operands(
            "call (r), f, (1);",
            &[
                List(vec![Name("r")]),
                Name("f"),
                List(vec![Operand::Constant(Constant::S64(1))]),
            ],
        );
        assert_operands("call f, ();", &[Name("f"), List(vec![])]);
    }

    #[test]
    fn tensors_and_textures() {
        assert_operands(
            "cp.async.bulk.tensor.2d.shared::cta.global.tile.mbarrier::complete_tx::bytes
                [dst], [tensor, {%r1, %r2}], [mbar], {im2col};",
            &[
                Operand::Address(at("dst", 0)),
                Bracket(vec![Name("tensor"), Vector(vec![Name("%r1"), Name("%r2")])]),
                Operand::Address(at("mbar", 0)),
                Vector(vec![Name("im2col")]),
            ],
        );
        assert_operands(
            "tex.1d.v4.s32.f32 {a,b,c,d}, [tex_a, sampler, {f1}];",
            &[
                Vector(vec![Name("a"), Name("b"), Name("c"), Name("d")]),
                Bracket(vec![
                    Name("tex_a"),
                    Name("sampler"),
                    Vector(vec![Name("f1")]),
                ]),
            ],
        );
    }
}

mod constants {
    use super::*;
    use Constant::{F32, F64, S64, U64};

    #[test]
    fn integers() {
        assert_constant("0", S64(0));
        assert_constant("42", S64(42));
        assert_constant("0x1F", S64(31));
        assert_constant("0XFFU", U64(255));
        assert_constant("017", S64(15));
        assert_constant("0b101U", U64(5));
        assert_constant("-8", S64(-8));
        assert_constant("WARP_SZ", S64(32));
        assert_constant("9223372036854775807", S64(i64::MAX));
        assert_constant("9223372036854775808", U64(1 << 63));
        assert_constant("-9223372036854775808", S64(i64::MIN));
        assert_constant("0xffffffffffffffff", U64(u64::MAX));
    }

    #[test]
    fn floats() {
        assert_constant("0f3F800000", F32(0x3f80_0000));
        assert_constant("0FbF800000", F32(0xbf80_0000));
        assert_constant("-0f3F800000", F32(0xbf80_0000));
        assert_constant("0d3FF0000000000000", F64(0x3ff0_0000_0000_0000));
        assert_constant("1.5", F64(1.5_f64.to_bits()));
        assert_constant("-1.5e-3", F64((-1.5e-3_f64).to_bits()));
        assert_constant("2.", F64(2.0_f64.to_bits()));
        assert_constant(".5", F64(0.5_f64.to_bits()));
        assert_constant(".5e+1", F64(5.0_f64.to_bits()));
        assert_constant("1e3", F64(1000.0_f64.to_bits()));
        assert_constant("1.0 / 4", F64(0.25_f64.to_bits()));
    }

    #[test]
    fn operators_bind_as_in_c() {
        assert_constant("1+2*3", S64(7));
        assert_constant("(1+2)*3", S64(9));
        assert_constant("10-4-3", S64(3));
        assert_constant("100/7 % 4", S64(2));
        assert_constant("1<<4|1", S64(17));
        assert_constant("1|2^3&5", S64(1 | (2 ^ (3 & 5))));
        assert_constant("0xF0>>4==0xF", S64(1));
        assert_constant("3<2||2>=2&&1!=1", S64(0));
        assert_constant("~0&0xFF", S64(255));
        assert_constant("!5+!0", S64(1));
        assert_constant("- - 3", S64(3));
        assert_constant("1 ? 2 : 0 ? 3 : 4", S64(2));
        assert_constant("0 ? 2 : 0 ? 3 : 4", S64(4));
    }

    #[test]
    fn one_unsigned_side_makes_both_unsigned() {
        assert_constant("-1 > 0U", S64(1));
        assert_constant("-1 > 0", S64(0));
        assert_constant("-1 >> 1U", S64(-1));
        assert_constant("(.u64)-1 >> 63", U64(1));
        assert_constant("(.s64)0xffffffffffffffff", S64(-1));
        assert_constant("1U - 2", U64(u64::MAX));
    }

    #[test]
    fn overflow_wraps_and_so_do_shifts() {
        assert_constant("9223372036854775807 + 1", S64(i64::MIN));
        assert_constant("-9223372036854775808 / -1", S64(i64::MIN));
        assert_constant("1 << 64", S64(1));
        assert_constant("1 << -1", S64(i64::MIN));
        assert_constant("2U - 3 >> 65", U64(u64::MAX >> 1));
    }

    #[test]
    fn as_bits_of_a_type() {
        assert_eq!(S64(-1).bits(ScalarType::B8), Some(0xff));
        assert_eq!(S64(-1).bits(ScalarType::S64), Some(u64::MAX));
        assert_eq!(U64(0x1_0000_0001).bits(ScalarType::U32), Some(1));
        assert_eq!(F32(0x3f80_0000).bits(ScalarType::B32), Some(0x3f80_0000));
        assert_eq!(
            F32(0x3f80_0000).bits(ScalarType::F64),
            Some(1.0_f64.to_bits())
        );
        assert_eq!(
            F64(0.1_f64.to_bits()).bits(ScalarType::F32),
            Some(0x3dcc_cccd)
        );
        assert_eq!(
            F64(1.0_f64.to_bits()).bits(ScalarType::B32),
            Some(0x3f80_0000)
        );
        assert_eq!(F32(0x3f80_0000).bits(ScalarType::B64), Some(0x3f80_0000));
        assert_eq!(F64(1.0_f64.to_bits()).bits(ScalarType::B16), None);
        assert_eq!(F32(0).bits(ScalarType::U32), None);
        assert_eq!(S64(1).bits(ScalarType::F64), None);
        assert_eq!(S64(-3).integer(), Some(-3));
        assert_eq!(U64(u64::MAX).integer(), Some(i128::from(u64::MAX)));
        assert_eq!(F64(0).integer(), None);
    }
}

mod statements {
    use super::*;

    #[test]
    fn labels_and_scopes() {
        with_code("$L__BB0_1: { ret; } done:", |code| {
            let shown: Vec<String> = code
                .statements()
                .iter()
                .map(|statement| match statement {
                    Statement::Label { name, position } => format!("{name} {position}"),
                    Statement::Open(position) => format!("open {position}"),
                    Statement::Close(position) => format!("close {position}"),
                    Statement::Instruction(instruction) => instruction.opcode.to_owned(),
                    other => panic!("{other:?}"),
                })
                .collect();
            assert_eq!(
                shown,
                [
                    "$L__BB0_1 5:1",
                    "open 5:12",
                    "ret",
                    "close 5:19",
                    "done 5:21"
                ]
            );
        });
    }

    #[test]
    fn registers() {
        with_code(".reg .pred %p<4>; .reg .v2 .f32 a, b<3>;", |code| {
            let [
                Statement::Declaration(predicates),
                Statement::Declaration(vectors),
            ] = code.statements()
            else {
                panic!("two declarations")
            };
            assert_eq!(
                (predicates.space, predicates.ty),
                (StateSpace::Reg, ScalarType::Pred)
            );
            assert_eq!(
                predicates.names[0].name,
                NameRange {
                    name: "%p",
                    count: Some(4)
                }
            );
            assert_eq!((vectors.vector, vectors.ty), (2, ScalarType::F32));
            assert_eq!(
                vectors.names[0].name,
                NameRange {
                    name: "a",
                    count: None
                }
            );
            assert_eq!(
                vectors.names[1].name,
                NameRange {
                    name: "b",
                    count: Some(3)
                }
            );
        });
    }

    #[test]
    fn variables() {
        with_code(
            ".local .align 16 .b8 __local_depot0[28];
             .extern .shared .align 4 .b8 dynamic[];
             .param .b32 retval0;
             .const .u32 primes[] = {2, 3, 5}, zero[2];",
            |code| {
                let declarations: Vec<_> = code
                    .statements()
                    .iter()
                    .map(|statement| match statement {
                        Statement::Declaration(declaration) => declaration,
                        other => panic!("{other:?}"),
                    })
                    .collect();
                let depot = declarations[0];
                assert_eq!((depot.space, depot.align), (StateSpace::Local, 16));
                assert_eq!(
                    (depot.names[0].dims.as_slice(), depot.names[0].size),
                    ([28].as_slice(), Some(28))
                );
                let dynamic = declarations[1];
                assert_eq!(
                    (dynamic.linkage, dynamic.names[0].size),
                    (Linkage::Extern, None)
                );
                assert_eq!(
                    (declarations[2].space, declarations[2].align),
                    (StateSpace::Param, 4)
                );
                let [primes, zero] = declarations[3].names.as_slice() else {
                    panic!("two names")
                };
                assert_eq!((primes.size, primes.elements.len()), (Some(12), 3));
                assert_eq!((primes.elements[2].offset, zero.size), (8, Some(8)));
            },
        );
    }

    #[test]
    fn places_in_the_source() {
        with_code(
            ".loc\t1 5 0\n.loc 1 15 3, function_name .debug_str+16, inlined_at 2 10 5",
            |code| {
                let [Statement::Loc(plain), Statement::Loc(inlined)] = code.statements() else {
                    panic!("two places")
                };
                assert_eq!(
                    plain.place,
                    SourcePlace {
                        file: 1,
                        line: 5,
                        column: 0
                    }
                );
                assert_eq!((plain.function_name, plain.inlined_at), (None, None));
                assert_eq!(
                    inlined.place,
                    SourcePlace {
                        file: 1,
                        line: 15,
                        column: 3
                    }
                );
                assert_eq!(inlined.function_name, Some((".debug_str", 16)));
                assert_eq!(
                    inlined.inlined_at,
                    Some(SourcePlace {
                        file: 2,
                        line: 10,
                        column: 5
                    })
                );
                assert_eq!(inlined.position.to_string(), "6:1");
            },
        );
    }

    #[test]
    fn pragmas() {
        with_code(".pragma \"nounroll\", \"other\";", |code| {
            let [Statement::Pragma { texts, .. }] = code.statements() else {
                panic!("a pragma")
            };
            assert_eq!(texts.as_slice(), ["nounroll", "other"]);
        });
    }

    #[test]
    fn lists_of_targets() {
        with_code(
            "ts: .branchtargets L1, N<5>;
             fs: .calltargets fast, slow;
             p0: .callprototype (.param .u32 _) _ (.param .f32 _, .param .b8 _[12]);
             p1: .callprototype _ .noreturn .abi_preserve 10;",
            |code| {
                let [
                    Statement::BranchTargets {
                        label: "ts",
                        names: labels,
                        ..
                    },
                    Statement::CallTargets {
                        label: "fs",
                        names: functions,
                        ..
                    },
                    Statement::CallPrototype(first),
                    Statement::CallPrototype(second),
                ] = code.statements()
                else {
                    panic!("{code:?}")
                };
                let [one, many] = labels.as_slice() else {
                    panic!("two labels")
                };
                assert_eq!(
                    (one.name, one.count, many.name, many.count),
                    ("L1", None, "N", Some(5))
                );
                assert_eq!(functions[1].name, "slow");
                assert_eq!(
                    (first.label, first.returns.len(), first.params[1].offset()),
                    ("p0", 1, 4)
                );
                assert!(!first.noreturn && second.noreturn);
                assert!(second.params.is_empty());
            },
        );
    }

    #[test]
    fn directives_of_a_later_language() {
        with_code(".later 1, 2\nret; .last {x y} ;", |code| {
            let [
                Statement::Directive { text: first, .. },
                Statement::Instruction(_),
                Statement::Directive { text: second, .. },
            ] = code.statements()
            else {
                panic!("{code:?}")
            };
            assert_eq!((*first, *second), (".later 1, 2", ".last {x y}"));
        });
    }
}

mod errors {
    use super::*;

    fn assert_errors(cases: &[(&str, &str)]) {
        for (body, shown) in cases {
            assert_eq!(&error(body).to_string(), shown, "{body}");
        }
    }

    #[test]
    fn operands() {
        assert_errors(&[
            (
                "add.u32 %r1 %r2;",
                "line 5, column 13: expected `,` or `;`, found `%r2`",
            ),
            ("\n ret", "line 7, column 1: expected an operand, found `}`"),
            (
                "add.u32 %r1, ;",
                "line 5, column 14: expected an operand, found `;`",
            ),
            (
                "ld.u32 %r1, [];",
                "line 5, column 14: expected an address, found `]`",
            ),
            (
                "ld.u32 %r1, [%rd1 %rd2];",
                "line 5, column 19: expected `,` or `]`, found `%rd2`",
            ),
            (
                "ld.u32 %r1, [%rd1+%rd2];",
                "line 5, column 19: expected a number, found `%rd2`",
            ),
            (
                "mov.b64 {%r1, %rd2; }",
                "line 5, column 19: expected `,` or `}`, found `;`",
            ),
            (
                "call (a, f;",
                "line 5, column 11: expected `,` or `)`, found `;`",
            ),
        ]);
    }

    #[test]
    fn numbers() {
        assert_errors(&[
            (
                "mov.u32 %r1, 0xG;",
                "line 5, column 14: expected a number of at most 64 bits, found `0xG`",
            ),
            (
                "mov.u64 %r1, 99999999999999999999;",
                "line 5, column 14: expected a number of at most 64 bits, found `99999999999999999999`",
            ),
            (
                "mov.u32 %r1, 0f3F8;",
                "line 5, column 14: expected a number of at most 64 bits, found `0f3F8`",
            ),
            (
                "mov.u32 %r1, 08;",
                "line 5, column 14: expected a number of at most 64 bits, found `08`",
            ),
            (
                "mov.u32 %r1, 1/(2-2);",
                "line 5, column 15: this divides by zero",
            ),
            (
                "mov.u32 %r1, 1U % 0;",
                "line 5, column 17: this divides by zero",
            ),
            (
                "mov.f64 %r1, ~1.0;",
                "line 5, column 14: `~` is not for floating-point numbers",
            ),
            (
                "mov.f64 %r1, 1.0 % 2.0;",
                "line 5, column 18: this operator is not for floating-point numbers",
            ),
        ]);
    }

    #[test]
    fn statements() {
        assert_errors(&[
            (
                "setp.eq.s32 %p1|3, 1, 2;",
                "line 5, column 17: expected a register, found `3`",
            ),
            (
                "@3 ret;",
                "line 5, column 2: expected a predicate, found `3`",
            ),
            (
                "@%p1 .reg .u32 x;",
                "line 5, column 6: expected an instruction, found `.reg`",
            ),
            (
                "@%p1 label: ret;",
                "line 5, column 11: expected an operand, found `:`",
            ),
            ("3;", "line 5, column 1: expected a statement, found `3`"),
            (
                "\u{1}",
                "line 5, column 1: expected a statement, found `\\u{1}`",
            ),
            (
                ".reg .u32 %r<n>;",
                "line 5, column 14: expected how many there are, found `n`",
            ),
            (
                ".reg .u32 %r<3;",
                "line 5, column 15: expected `>`, found `;`",
            ),
            (
                ".extern .u32 x;",
                "line 5, column 9: expected a state space such as `.shared`, found `.u32`",
            ),
            (".loc 1 2", "line 6, column 1: expected a column, found `}`"),
            (
                ".loc 1 2 3, elsewhere 4",
                "line 5, column 13: expected `function_name` or `inlined_at`, found `elsewhere`",
            ),
            (
                "p: .callprototype f;",
                "line 5, column 19: expected `_`, found `f`",
            ),
            (
                ".local .u8 x[2] = {1, 2, 3};",
                "line 5, column 26: expected `}`, there is room for 2, found `3`",
            ),
        ]);
    }

    #[test]
    fn nesting_is_bounded() {
        for (open, close) in [
            ("{", "}"),
            ("[", "]"),
            ("(", ")"),
            ("-(", ")"),
            ("!", ""),
            ("1?", ":2"),
        ] {
            let body = format!("call {}1{};", open.repeat(5000), close.repeat(5000));
            let message = error(&body).message();
            assert_eq!(message, "this is nested more than 32 deep", "{open}");
        }
    }

    #[test]
    fn another_text() {
        let text = format!("{HEAD}ret; }}");
        let module = Module::parse(&text).unwrap();
        let body = module.entries()[0].body().unwrap();
        for other in ["", "üüüüüüüüüüüüüüüüüüüüüüüüüüü", &"x".repeat(1000)]
        {
            let error = body.parse(other).unwrap_err();
            assert_eq!(
                error.to_string(),
                "line 4, column 1: this is not the text that the module was read from"
            );
        }
        let shifted = format!("{HEAD}r}}{{ }}");
        assert!(body.parse(&shifted).is_err());
    }
}
