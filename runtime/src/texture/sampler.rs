//! How a texture is read at coordinates.

use cudarc::driver::sys;

use super::Texel;

/// How a texture is read at coordinates: what is beyond the ends, and between elements.
///
/// ```
/// use gridcall::{AddressMode, FilterMode, Sampler};
///
/// let sampler = Sampler::new()
///     .address(AddressMode::Wrap)
///     .normalized_coordinates()
///     .filter(FilterMode::Linear);
/// # let _ = sampler;
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[must_use]
pub struct Sampler {
    address: AddressMode,
    filter: FilterMode,
    normalized_coordinates: bool,
    as_float: bool,
}

/// What a texture holds beyond its ends: `CUaddress_mode`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum AddressMode {
    /// What the nearest element holds.
    #[default]
    Clamp,
    /// Zeros.
    Border,
    /// The texture again; with normalized coordinates alone.
    Wrap,
    /// The texture backwards; with normalized coordinates alone.
    Mirror,
}

/// What a texture holds between its elements: `CUfilter_mode`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum FilterMode {
    /// What the nearest element holds.
    #[default]
    Point,
    /// A mean of those around it, two for each dimension, where floating-point numbers are read.
    Linear,
}

impl Sampler {
    /// The nearest element, by its indices.
    pub const fn new() -> Sampler {
        Sampler {
            address: AddressMode::Clamp,
            filter: FilterMode::Point,
            normalized_coordinates: false,
            as_float: false,
        }
    }

    /// What is beyond the ends.
    pub const fn address(mut self, mode: AddressMode) -> Sampler {
        self.address = mode;
        self
    }

    /// What is between elements.
    pub const fn filter(mut self, mode: FilterMode) -> Sampler {
        self.filter = mode;
        self
    }

    /// Coordinates are from 0 to 1, whatever the size.
    pub const fn normalized_coordinates(mut self) -> Sampler {
        self.normalized_coordinates = true;
        self
    }

    /// Integers of 8 and 16 bits are read as floating-point numbers, from 0 or -1 to 1
    /// (`cudaReadModeNormalizedFloat`).
    pub const fn read_as_float(mut self) -> Sampler {
        self.as_float = true;
        self
    }

    pub(super) fn description<T: Texel>(self) -> Result<sys::CUDA_TEXTURE_DESC_st, String> {
        let wraps = matches!(self.address, AddressMode::Wrap | AddressMode::Mirror);
        if wraps && !self.normalized_coordinates {
            return Err(
                "a texture wraps with normalized coordinates alone; add `.normalized_coordinates()`"
                    .to_owned(),
            );
        }
        let narrow = size_of::<T>() / T::CHANNELS as usize <= 2;
        if self.as_float && (T::IS_FLOAT || !narrow) {
            return Err(
                "only integers of 8 and 16 bits are read as floating-point numbers; leave `read_as_float` out"
                    .to_owned(),
            );
        }
        if self.filter == FilterMode::Linear && !T::IS_FLOAT && !self.as_float {
            return Err(
                "only floating-point numbers have a mean; add `.read_as_float()`, or read points"
                    .to_owned(),
            );
        }
        let address = match self.address {
            AddressMode::Clamp => sys::CUaddress_mode::CU_TR_ADDRESS_MODE_CLAMP,
            AddressMode::Border => sys::CUaddress_mode::CU_TR_ADDRESS_MODE_BORDER,
            AddressMode::Wrap => sys::CUaddress_mode::CU_TR_ADDRESS_MODE_WRAP,
            AddressMode::Mirror => sys::CUaddress_mode::CU_TR_ADDRESS_MODE_MIRROR,
        };
        let filter = match self.filter {
            FilterMode::Point => sys::CUfilter_mode::CU_TR_FILTER_MODE_POINT,
            FilterMode::Linear => sys::CUfilter_mode::CU_TR_FILTER_MODE_LINEAR,
        };
        /// `CU_TRSF_READ_AS_INTEGER` and `CU_TRSF_NORMALIZED_COORDINATES`.
        const READ_AS_INTEGER: u32 = 1;
        const NORMALIZED_COORDINATES: u32 = 2;
        let mut flags = 0;
        if !T::IS_FLOAT && !self.as_float {
            flags |= READ_AS_INTEGER;
        }
        if self.normalized_coordinates {
            flags |= NORMALIZED_COORDINATES;
        }
        Ok(sys::CUDA_TEXTURE_DESC_st {
            addressMode: [address; 3],
            filterMode: filter,
            flags,
            maxAnisotropy: 0,
            mipmapFilterMode: sys::CUfilter_mode::CU_TR_FILTER_MODE_POINT,
            mipmapLevelBias: 0.0,
            minMipmapLevelClamp: 0.0,
            maxMipmapLevelClamp: 0.0,
            borderColor: [0.0; 4],
            reserved: [0; 12],
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_rule_has_its_words() {
        let error = |sampler: Sampler| sampler.description::<u8>().unwrap_err();
        assert!(
            error(Sampler::new().address(AddressMode::Wrap)).contains("normalized coordinates")
        );
        assert!(error(Sampler::new().filter(FilterMode::Linear)).contains("have a mean"));
        let wide = Sampler::new().read_as_float().description::<u32>();
        assert!(wide.unwrap_err().contains("of 8 and 16 bits"));
        let bytes = Sampler::new().read_as_float().filter(FilterMode::Linear);
        assert_eq!(bytes.description::<u8>().unwrap().flags, 0);
        assert_eq!(
            Sampler::new().description::<crate::UChar4>().unwrap().flags,
            1
        );
        assert_eq!(Sampler::new().description::<f32>().unwrap().flags, 0);
    }
}
