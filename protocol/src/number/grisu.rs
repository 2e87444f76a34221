//! Digits of a double by Grisu2 (Florian Loitsch, "Printing Floating-Point Numbers Quickly and Accurately with Integers", PLDI 2010).
//!
//! Redis writes doubles so. The digits always read back as the same number, but for about one number in a thousand they are not the
//! fewest that do: 5e22 becomes 49999999999999996 and six zeros. Answers and files are to be equal to the byte, so ours miss them too.
//!
//! The number and the middles between it and its neighbours are multiplied by a power of ten that brings their binary point to
//! a known place; then digits are taken from the upper middle until what is left lies between the two. Arithmetic has 64 bits and
//! its errors are on the safe side.

/// The exponents of a product by a cached power lie in these bounds, so that its whole part has 32 bits at most.
const EXPONENTS: std::ops::RangeInclusive<i32> = -60..=-32;

/// `frac * 2^exp`.
#[derive(Clone, Copy)]
struct Float {
    frac: u64,
    exp: i32,
}

impl Float {
    fn normalized(self) -> Self {
        let shift = self.frac.leading_zeros();
        Self { frac: self.frac << shift, exp: self.exp - shift as i32 }
    }

    /// The upper 64 bits of the product, rounded.
    fn times(self, other: Self) -> Self {
        let product = u128::from(self.frac) * u128::from(other.frac) + (1 << 63);
        Self { frac: (product >> 64) as u64, exp: self.exp + other.exp + 64 }
    }
}

/// Decimal digits, and the power of ten of the last.
pub(super) struct Decimal {
    pub digits: Vec<u8>,
    pub power: i32,
}

/// The digits of a positive finite number.
pub(super) fn digits(value: f64) -> Decimal {
    const HIDDEN: u64 = 1 << 52;
    const BIAS: i32 = 1023 + 52;
    let bits = value.to_bits();
    let (frac, biased) = (bits & (HIDDEN - 1), (bits >> 52 & 0x7ff) as i32);
    let exact = match biased {
        0 => Float { frac, exp: 1 - BIAS },
        _ => Float { frac: frac | HIDDEN, exp: biased - BIAS },
    };
    let upper = Float { frac: (exact.frac << 1) + 1, exp: exact.exp - 1 }.normalized();
    // Below a power of two the neighbour is only half as far.
    let step = if exact.frac == HIDDEN { 2 } else { 1 };
    let lower = Float { frac: (exact.frac << step) - 1, exp: exact.exp - step };
    let lower = Float { frac: lower.frac << (lower.exp - upper.exp), exp: upper.exp };
    let (power, tens) = power_for(upper.exp);
    let (exact, mut lower, mut upper) = (exact.normalized().times(tens), lower.times(tens), upper.times(tens));
    lower.frac += 1;
    upper.frac -= 1;
    Digits::new(exact, upper, lower).take(-power)
}

/// A power of ten that brings a number of this exponent into [`EXPONENTS`].
fn power_for(exp: i32) -> (i32, Float) {
    const LOG10_OF_2: f64 = 0.301_029_995_663_981_14;
    const FIRST: i32 = -348;
    const STEP: i32 = 8;
    let power = |index: usize| FIRST + index as i32 * STEP;
    // The power's logarithm of two, by a fraction that is exact in this range.
    let tens = |index: usize| Float { frac: POWERS[index], exp: ((power(index) * 1_741_647) >> 19) - 63 };
    let guess = (-f64::from(exp + POWERS.len() as i32) * LOG10_OF_2) as i32;
    let mut index = ((guess - FIRST) / STEP) as usize;
    loop {
        let found = tens(index);
        let sum = exp + found.exp + 64;
        if EXPONENTS.contains(&sum) {
            return (power(index), found);
        }
        if sum < *EXPONENTS.start() { index += 1 } else { index -= 1 }
    }
}

/// Digits being taken from the upper bound of a number.
struct Digits {
    text: Vec<u8>,
    /// From the lower to the upper bound.
    delta: u64,
    /// From the number itself to the upper bound.
    distance: u64,
    /// Bits behind the binary point.
    shift: u32,
    whole: u64,
    fraction: u64,
}

impl Digits {
    fn new(exact: Float, upper: Float, lower: Float) -> Self {
        let shift = (-upper.exp) as u32;
        Self {
            text: Vec::with_capacity(18),
            delta: upper.frac - lower.frac,
            distance: upper.frac - exact.frac,
            shift,
            whole: upper.frac >> shift,
            fraction: upper.frac & ((1 << shift) - 1),
        }
    }

    fn push(&mut self, digit: u64) {
        if digit != 0 || !self.text.is_empty() {
            self.text.push(b'0' + digit as u8);
        }
    }

    fn take(mut self, power: i32) -> Decimal {
        for place in (0..10_u32).rev() {
            let unit = 10_u64.pow(place);
            self.push(self.whole / unit);
            self.whole %= unit;
            let rest = (self.whole << self.shift) + self.fraction;
            if rest <= self.delta {
                self.approach(rest, unit << self.shift, self.distance);
                return Decimal { digits: self.text, power: power + place as i32 };
            }
        }
        let (mut place, mut scale) = (0, 1_u64);
        loop {
            (self.fraction, self.delta, scale) = (self.fraction * 10, self.delta * 10, scale.wrapping_mul(10));
            place -= 1;
            self.push(self.fraction >> self.shift);
            self.fraction &= (1 << self.shift) - 1;
            if self.fraction < self.delta {
                self.approach(self.fraction, 1 << self.shift, self.distance.wrapping_mul(scale));
                return Decimal { digits: self.text, power: power + place };
            }
        }
    }

    /// Lowers the last digit while that brings the digits nearer to the number and leaves them between the bounds.
    fn approach(&mut self, mut rest: u64, unit: u64, distance: u64) {
        while rest < distance
            && self.delta - rest >= unit
            && (rest + unit < distance || distance - rest > rest + unit - distance)
        {
            if let Some(digit) = self.text.last_mut() {
                *digit -= 1;
            }
            rest += unit;
        }
    }
}

/// `10^-348`, `10^-340` and so on to `10^340`, the upper 64 bits of each, rounded.
#[rustfmt::skip]
const POWERS: [u64; 87] = [
    0xfa8f_d5a0_081c_0288, 0xbaae_e17f_a23e_bf76, 0x8b16_fb20_3055_ac76, 0xcf42_894a_5dce_35ea,
    0x9a6b_b0aa_5565_3b2d, 0xe61a_cf03_3d1a_45df, 0xab70_fe17_c79a_c6ca, 0xff77_b1fc_bebc_dc4f,
    0xbe56_91ef_416b_d60c, 0x8dd0_1fad_907f_fc3c, 0xd351_5c28_3155_9a83, 0x9d71_ac8f_ada6_c9b5,
    0xea9c_2277_23ee_8bcb, 0xaecc_4991_4078_536d, 0x823c_1279_5db6_ce57, 0xc210_9436_4dfb_5637,
    0x9096_ea6f_3848_984f, 0xd774_85cb_2582_3ac7, 0xa086_cfcd_97bf_97f4, 0xef34_0a98_172a_ace5,
    0xb238_67fb_2a35_b28e, 0x84c8_d4df_d2c6_3f3b, 0xc5dd_4427_1ad3_cdba, 0x936b_9fce_bb25_c996,
    0xdbac_6c24_7d62_a584, 0xa3ab_6658_0d5f_daf6, 0xf3e2_f893_dec3_f126, 0xb5b5_ada8_aaff_80b8,
    0x8762_5f05_6c7c_4a8b, 0xc9bc_ff60_34c1_3053, 0x964e_858c_91ba_2655, 0xdff9_7724_7029_7ebd,
    0xa6df_bd9f_b8e5_b88f, 0xf8a9_5fcf_8874_7d94, 0xb944_7093_8fa8_9bcf, 0x8a08_f0f8_bf0f_156b,
    0xcdb0_2555_6531_31b6, 0x993f_e2c6_d07b_7fac, 0xe45c_10c4_2a2b_3b06, 0xaa24_2499_6973_92d3,
    0xfd87_b5f2_8300_ca0e, 0xbce5_0864_9211_1aeb, 0x8cbc_cc09_6f50_88cc, 0xd1b7_1758_e219_652c,
    0x9c40_0000_0000_0000, 0xe8d4_a510_0000_0000, 0xad78_ebc5_ac62_0000, 0x813f_3978_f894_0984,
    0xc097_ce7b_c907_15b3, 0x8f7e_32ce_7bea_5c70, 0xd5d2_38a4_abe9_8068, 0x9f4f_2726_179a_2245,
    0xed63_a231_d4c4_fb27, 0xb0de_6538_8cc8_ada8, 0x83c7_088e_1aab_65db, 0xc45d_1df9_4271_1d9a,
    0x924d_692c_a61b_e758, 0xda01_ee64_1a70_8dea, 0xa26d_a399_9aef_774a, 0xf209_787b_b47d_6b85,
    0xb454_e4a1_79dd_1877, 0x865b_8692_5b9b_c5c2, 0xc835_53c5_c896_5d3d, 0x952a_b45c_fa97_a0b3,
    0xde46_9fbd_99a0_5fe3, 0xa59b_c234_db39_8c25, 0xf6c6_9a72_a398_9f5c, 0xb7dc_bf53_54e9_bece,
    0x88fc_f317_f222_41e2, 0xcc20_ce9b_d35c_78a5, 0x9816_5af3_7b21_53df, 0xe2a0_b5dc_971f_303a,
    0xa8d9_d153_5ce3_b396, 0xfb9b_7cd9_a4a7_443c, 0xbb76_4c4c_a7a4_4410, 0x8bab_8eef_b640_9c1a,
    0xd01f_ef10_a657_842c, 0x9b10_a4e5_e991_3129, 0xe710_9bfb_a19c_0c9d, 0xac28_20d9_623b_f429,
    0x8044_4b5e_7aa7_cf85, 0xbf21_e440_03ac_dd2d, 0x8e67_9c2f_5e44_ff8f, 0xd433_179d_9c8c_b841,
    0x9e19_db92_b4e3_1ba9, 0xeb96_bf6e_badf_77d9, 0xaf87_023b_9bf0_ee6b,
];
