//! Tensor maps: their rules, and the 128 bytes that a kernel is given.

use super::Call;
use super::border::{Host, In};
use super::codes::{Answer, Code};
use super::entry::driver_api;
use crate::exec::{TensorMap, TensorMode};
use crate::report::ReportKind;

/// What the address of a map is a multiple of.
const ALIGN: u64 = 64;

/// What both kinds of maps have in common, as the caller passes it.
struct Array {
    element: u32,
    rank: u32,
    address: Host,
    dims: In<u64>,
    strides: In<u64>,
    element_strides: In<u32>,
    interleave: u32,
    swizzle: u32,
    l2_promotion: u32,
    fill: u32,
}

impl Array {
    /// The map, if its rank is one that arrays can have.
    fn map(&self, mode: TensorMode) -> Answer<TensorMap> {
        let rank = usize::try_from(self.rank).map_err(|_| Code::INVALID_VALUE)?;
        Ok(TensorMap {
            element: self.element,
            rank: self.rank,
            address: self.address.address(),
            dims: some(self.dims, rank, 1)?,
            strides: some(self.strides, rank.saturating_sub(1), 0)?,
            element_strides: some(self.element_strides, rank, 1)?,
            interleave: self.interleave,
            swizzle: self.swizzle,
            l2_promotion: self.l2_promotion,
            fill: self.fill,
            mode,
        })
    }
}

/// The first `count` numbers of an array, and another for the rest.
fn some<T: Copy, const N: usize>(from: In<T>, count: usize, rest: T) -> Answer<[T; N]> {
    let mut values = [rest; N];
    for (at, value) in values.iter_mut().enumerate().take(count) {
        *value = from.at(at)?;
    }
    Ok(values)
}

impl Call {
    /// Writes a map down, unless it breaks a rule.
    fn encode(&mut self, to: Host, function: &str, map: &TensorMap) -> Answer {
        let words = match map.check() {
            Err(words) => words,
            Ok(()) if to.is_null() => "no place for the map".to_owned(),
            Ok(()) if !to.address().is_multiple_of(ALIGN) => {
                format!(
                    "a place for the map at {:#x}, no multiple of {ALIGN}",
                    to.address()
                )
            }
            Ok(()) => {
                to.write(&map.to_bytes());
                return Ok(());
            }
        };
        let device = self.current().map_or(0, |context| context.device);
        let message = format!("{function} is asked for {words}");
        Err(self.refuse(
            ReportKind::InvalidArgument,
            device,
            Code::INVALID_VALUE,
            message,
        ))
    }
}

driver_api! {
    fn cuTensorMapEncodeTiled(
        call, map: Host, element: u32, rank: u32, address: Host, dims: In<u64>, strides: In<u64>, tile: In<u32>,
        element_strides: In<u32>, interleave: u32, swizzle: u32, l2_promotion: u32, fill: u32,
    ) {
        let array = Array { element, rank, address, dims, strides, element_strides, interleave, swizzle, l2_promotion, fill };
        let count = usize::try_from(rank).map_err(|_| Code::INVALID_VALUE)?;
        let mode = TensorMode::Tiled { tile: some(tile, count, 1)? };
        let encoded = array.map(mode)?;
        call.encode(map, "cuTensorMapEncodeTiled", &encoded)
    }

    fn cuTensorMapEncodeIm2col(
        call, map: Host, element: u32, rank: u32, address: Host, dims: In<u64>, strides: In<u64>, lower: In<i32>,
        upper: In<i32>, channels: u32, pixels: u32, element_strides: In<u32>, interleave: u32, swizzle: u32,
        l2_promotion: u32, fill: u32,
    ) {
        let array = Array { element, rank, address, dims, strides, element_strides, interleave, swizzle, l2_promotion, fill };
        let spatial = usize::try_from(rank.saturating_sub(2)).map_err(|_| Code::INVALID_VALUE)?;
        let mode = TensorMode::Im2col {
            lower: some(lower, spatial, 0)?,
            upper: some(upper, spatial, 0)?,
            channels,
            pixels,
        };
        let encoded = array.map(mode)?;
        call.encode(map, "cuTensorMapEncodeIm2col", &encoded)
    }

    fn cuTensorMapReplaceAddress(call, map: Host, address: Host) {
        if map.is_null() {
            return Err(Code::INVALID_VALUE);
        }
        let mut bytes = [0; 128];
        map.read_to(&mut bytes);
        let Some(mut replaced) = TensorMap::from_bytes(&bytes) else {
            return Err(Code::INVALID_VALUE);
        };
        replaced.address = address.address();
        call.encode(map, "cuTensorMapReplaceAddress", &replaced)
    }
}
