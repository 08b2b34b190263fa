//! The addresses of functions: each program has its own, so that a function of another program is no
//! function of this one.

use std::sync::atomic::{AtomicU64, Ordering};

use super::space::CODE;

/// How far apart the addresses of functions lie.
const STRIDE: u64 = 16;
/// How far apart those of programs lie.
const PROGRAM_STRIDE: u64 = 1 << 24;
/// So many programs fit behind [`CODE`]; further ones share addresses with the first.
const PROGRAMS: u64 = 1 << 20;

/// Where the addresses of a program's functions begin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CodeBase(u64);

/// What there is at an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum At {
    /// A function of the program, by its index.
    Function(usize),
    /// Where another program's functions are.
    OtherProgram,
    Nothing,
}

impl CodeBase {
    /// That of the next program.
    pub(crate) fn next() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        Self(CODE + number % PROGRAMS * PROGRAM_STRIDE)
    }

    pub(crate) fn address(self, function: usize) -> u64 {
        self.0 + (function as u64 + 1) * STRIDE
    }

    pub(crate) fn at(self, address: u64) -> At {
        let offset = address.wrapping_sub(self.0);
        if offset < PROGRAM_STRIDE {
            return match usize::try_from(offset / STRIDE) {
                Ok(number) if number > 0 && offset.is_multiple_of(STRIDE) => {
                    At::Function(number - 1)
                }
                _ => At::Nothing,
            };
        }
        if address.wrapping_sub(CODE) < PROGRAMS * PROGRAM_STRIDE {
            return At::OtherProgram;
        }
        At::Nothing
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_found_in_their_own_program() {
        let (one, other) = (CodeBase::next(), CodeBase::next());
        for index in [0, 1, 1000] {
            assert_eq!(one.at(one.address(index)), At::Function(index));
            assert_eq!(one.at(one.address(index) + 4), At::Nothing);
            assert_eq!(one.at(other.address(index)), At::OtherProgram);
        }
        assert_eq!(one.at(one.0), At::Nothing);
        assert_eq!(one.at(0), At::Nothing);
        assert_eq!(one.at(u64::MAX), At::Nothing);
    }
}
