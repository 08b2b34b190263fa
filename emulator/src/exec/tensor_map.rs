//! Tensor maps: what `cuTensorMapEncodeTiled` and `cuTensorMapEncodeIm2col` write down, and which bytes an
//! instruction copies by one.
//!
//! The 128 bytes of a map are the emulator's own: a driver's are secret, and no program may read them.

/// An array in global memory, and what of it an instruction copies. Dimensions are counted as the driver
/// does, innermost first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TensorMap {
    /// `CUtensorMapDataType`
    pub element: u32,
    /// The number of dimensions.
    pub rank: u32,
    /// The address of the first element.
    pub address: u64,
    /// The elements along each dimension.
    pub dims: [u64; 5],
    /// From one element to the next in bytes, along all dimensions but the innermost.
    pub strides: [u64; 4],
    /// Of every so many elements one is copied.
    pub element_strides: [u32; 5],
    /// `CUtensorMapInterleave`
    pub interleave: u32,
    /// `CUtensorMapSwizzle`
    pub swizzle: u32,
    /// `CUtensorMapL2promotion`, which changes nothing here.
    pub l2_promotion: u32,
    /// `CUtensorMapFloatOOBfill`
    pub fill: u32,
    /// What is copied.
    pub mode: Mode,
}

/// What an instruction copies by a map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// A box.
    Tiled {
        /// Its elements along each dimension.
        tile: [u32; 5],
    },
    /// The pixels that one weight of a convolution meets.
    Im2col {
        /// Where the box of pixels begins, from the first pixel on.
        lower: [i32; 3],
        /// Where it ends, from the last pixel on.
        upper: [i32; 3],
        /// The channels of each pixel.
        channels: u32,
        /// The pixels.
        pixels: u32,
    },
}

/// The size of a map in bytes, which it is not aligned to: that is 64.
pub(crate) const BYTES: usize = 128;
pub(crate) const ALIGN: u64 = 64;

/// What the bytes of a map begin with.
const MAGIC: [u8; 2] = *b"tm";

/// The bytes of an element by the number of its type.
const SIZES: [u32; 13] = [1, 2, 4, 4, 8, 8, 2, 4, 8, 2, 4, 4, 4];
/// The first of the types that are floating-point.
const FIRST_FLOAT: u32 = 6;

/// The shared memory of a multiprocessor, in bytes: no box is larger.
const MOST_BYTES: u64 = 228 << 10;

impl TensorMap {
    /// The bytes of an element.
    pub(crate) fn size(&self) -> u32 {
        SIZES.get(self.element as usize).copied().unwrap_or(1)
    }

    /// The bytes that lie beside each other in an interleaved array; none in others.
    pub(crate) fn slice(&self) -> Option<u32> {
        match self.interleave {
            1 => Some(16),
            2 => Some(32),
            _ => None,
        }
    }

    /// What addresses and strides are multiples of.
    fn unit(&self) -> u64 {
        if self.interleave == 2 { 32 } else { 16 }
    }

    fn rank(&self) -> usize {
        self.rank as usize
    }

    /// The first rule of the driver's that is not kept, in words.
    ///
    /// # Errors
    ///
    /// If there is one.
    pub fn check(&self) -> Result<(), String> {
        let im2col = matches!(self.mode, Mode::Im2col { .. });
        let least = if im2col || self.interleave != 0 { 3 } else { 1 };
        if !(least..=5).contains(&self.rank) {
            return Err(format!(
                "a rank of {}, where {least} to 5 are possible",
                self.rank
            ));
        }
        if self.element as usize >= SIZES.len() {
            return Err(format!(
                "data type {}, which is none of this device",
                self.element
            ));
        }
        if self.interleave > 2 || self.swizzle > 3 || self.l2_promotion > 3 || self.fill > 1 {
            return Err(format!(
                "interleave {}, swizzle {}, L2 promotion {} or fill {}, of which one is none of this device",
                self.interleave, self.swizzle, self.l2_promotion, self.fill
            ));
        }
        if self.fill == 1 && self.element < FIRST_FLOAT {
            return Err("a NaN to fill with, for elements that are integers".to_owned());
        }
        if self.interleave == 2 && self.swizzle != 1 {
            return Err("an interleave of 32 bytes without a swizzle of 32 bytes".to_owned());
        }
        let unit = self.unit();
        if !self.address.is_multiple_of(unit) {
            return Err(format!(
                "the address {:#x}, which is no multiple of {unit}",
                self.address
            ));
        }
        for (at, &extent) in self.dims[..self.rank()].iter().enumerate() {
            if extent == 0 || extent > 1 << 32 {
                return Err(format!(
                    "{extent} elements along dimension {at}, where 1 to 2^32 are possible"
                ));
            }
        }
        for (at, &stride) in self.strides[..self.rank() - 1].iter().enumerate() {
            if !stride.is_multiple_of(unit) || stride >= 1 << 40 {
                return Err(format!(
                    "stride {at} of {stride} bytes, where multiples of {unit} below 2^40 are possible"
                ));
            }
        }
        for (at, &step) in self.element_strides[..self.rank()].iter().enumerate() {
            if step == 0 || step > 8 {
                return Err(format!(
                    "element stride {at} of {step}, where 1 to 8 are possible"
                ));
            }
        }
        match self.mode {
            Mode::Tiled { tile } => self.check_tile(&tile),
            Mode::Im2col {
                lower,
                upper,
                channels,
                pixels,
            } => self.check_pixels(lower, upper, channels, pixels),
        }
    }

    fn check_tile(&self, tile: &[u32; 5]) -> Result<(), String> {
        let tile = &tile[..self.rank()];
        for (at, &size) in tile.iter().enumerate() {
            if size == 0 || size > 256 {
                return Err(format!(
                    "a box of {size} along dimension {at}, where 1 to 256 are possible"
                ));
            }
        }
        let bytes = tile.iter().fold(u64::from(self.size()), |bytes, size| {
            bytes.saturating_mul(u64::from(*size))
        });
        check_size(bytes)?;
        self.check_inner(tile[0])
    }

    fn check_pixels(
        &self,
        lower: [i32; 3],
        upper: [i32; 3],
        channels: u32,
        pixels: u32,
    ) -> Result<(), String> {
        let spatial = self.rank() - 2;
        // Channels come first, but where slices of them are, which are no dimension.
        let first = usize::from(self.interleave == 0);
        let most = [1 << 15, 1 << 7, 1 << 4][spatial - 1];
        for at in 0..spatial {
            let (low, high) = (lower[at], upper[at]);
            if !(-most..most).contains(&low) || !(-most..most).contains(&high) {
                return Err(format!(
                    "corners {low} and {high} along dimension {}, where {} to {} are possible",
                    first + at,
                    -most,
                    most - 1
                ));
            }
            // In 32 bits, as the driver counts.
            let end = (self.dims[first + at] as i32).wrapping_add(high);
            if end <= low {
                return Err(format!(
                    "a box without pixels along dimension {}",
                    first + at
                ));
            }
        }
        if channels == 0 || channels > 256 {
            return Err(format!("{channels} channels, where 1 to 256 are possible"));
        }
        if pixels == 0 || pixels > 1024 {
            return Err(format!("{pixels} pixels, where 1 to 1024 are possible"));
        }
        check_size(u64::from(channels * self.size()) * u64::from(pixels))?;
        self.check_inner(channels)
    }

    /// The innermost dimension of what is copied.
    fn check_inner(&self, elements: u32) -> Result<(), String> {
        let bytes = elements * self.size();
        if !bytes.is_multiple_of(16) {
            return Err(format!(
                "{bytes} bytes along the innermost dimension, no multiple of 16"
            ));
        }
        if self.interleave != 0 {
            return Ok(());
        }
        let most = [u32::MAX, 32, 64, 128][self.swizzle as usize];
        if bytes > most {
            return Err(format!(
                "{bytes} bytes along the innermost dimension, where the swizzle takes {most} at most"
            ));
        }
        Ok(())
    }

    /// The map as a kernel is given it.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; BYTES] {
        let mut bytes = Vec::with_capacity(BYTES);
        bytes.extend(MAGIC);
        let small = [
            self.element,
            self.rank,
            self.interleave,
            self.swizzle,
            self.l2_promotion,
            self.fill,
        ];
        bytes.extend(small.map(|value| value as u8));
        bytes.extend(self.address.to_le_bytes());
        // One less, so that 2^32 fits.
        bytes.extend(
            self.dims
                .iter()
                .flat_map(|dim| (dim.wrapping_sub(1) as u32).to_le_bytes()),
        );
        bytes.extend(self.strides.iter().flat_map(|stride| stride.to_le_bytes()));
        bytes.extend(self.element_strides.map(|step| step as u8));
        match self.mode {
            Mode::Tiled { tile } => {
                bytes.push(0);
                bytes.extend(tile.iter().flat_map(|size| (*size as u16).to_le_bytes()));
            }
            Mode::Im2col {
                lower,
                upper,
                channels,
                pixels,
            } => {
                bytes.push(1);
                let corners = lower.iter().chain(&upper);
                bytes.extend(corners.flat_map(|corner| (*corner as i16).to_le_bytes()));
                bytes.extend((channels as u16).to_le_bytes());
                bytes.extend((pixels as u16).to_le_bytes());
            }
        }
        let mut whole = [0; BYTES];
        whole[..bytes.len()].copy_from_slice(&bytes);
        whole
    }

    /// Reads a map; none if the bytes are no map that the emulator wrote.
    #[must_use]
    pub fn from_bytes(bytes: &[u8; BYTES]) -> Option<Self> {
        let mut reader = Reader(bytes);
        if reader.take::<2>() != MAGIC {
            return None;
        }
        let [element, rank, interleave, swizzle, l2_promotion, fill] =
            reader.take::<6>().map(u32::from);
        let address = u64::from_le_bytes(reader.take());
        let dims = [(); 5].map(|()| u64::from(u32::from_le_bytes(reader.take())) + 1);
        let strides = [(); 4].map(|()| u64::from_le_bytes(reader.take()));
        let element_strides = reader.take::<5>().map(u32::from);
        let short = |reader: &mut Reader<'_>| u32::from(u16::from_le_bytes(reader.take()));
        let mode = if reader.take::<1>() == [0] {
            Mode::Tiled {
                tile: [(); 5].map(|()| short(&mut reader)),
            }
        } else {
            let mut corner = || [(); 3].map(|()| i32::from(i16::from_le_bytes(reader.take())));
            Mode::Im2col {
                lower: corner(),
                upper: corner(),
                channels: short(&mut reader),
                pixels: short(&mut reader),
            }
        };
        let map = Self {
            element,
            rank,
            address,
            dims,
            strides,
            element_strides,
            interleave,
            swizzle,
            l2_promotion,
            fill,
            mode,
        };
        map.check().is_ok().then_some(map)
    }
}

fn check_size(bytes: u64) -> Result<(), String> {
    if bytes > MOST_BYTES {
        return Err(format!(
            "a box of {bytes} bytes, where {MOST_BYTES} are the most"
        ));
    }
    Ok(())
}

struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn take<const N: usize>(&mut self) -> [u8; N] {
        let mut bytes = [0; N];
        if let Some((first, rest)) = self.0.split_at_checked(N) {
            bytes.copy_from_slice(first);
            self.0 = rest;
        }
        bytes
    }
}
