//! A Cholesky factor that takes up rows by reflections, and tells how each of them was predicted by those before it.
//!
//! Let A = LLᵀ, z = L⁻¹r, so that θ = L⁻ᵀz solves Aθ = r, and let Φ be rows with targets y. An orthogonal Q with
//!
//! ```text
//! ⎡ L   Φᵀ ⎤       ⎡ L′   0  ⎤
//! ⎢ zᵀ  yᵀ ⎥ Q  =  ⎢ z′ᵀ  εᵀ ⎥
//! ⎣ 0   I  ⎦       ⎣ ·    Q₂₂⎦
//! ```
//!
//! gives L′ and z′ of A + ΦᵀΦ and r + Φᵀy: no sums, no factorisation. Q₂₂Q₂₂ᵀ = (I + ΦA⁻¹Φᵀ)⁻¹ = C⁻ᵀC⁻¹ with the C of the innovations
//! (see [`crate::solver::RecursiveRidge`]), so that Q₂₂ = C⁻ᵀO with an orthogonal O, and the errors of the rows, each predicted from
//! those before it, are diag(C) Oε, their variances diag(C)². Turned upside down, C⁻ᵀ is a lower triangle, which more
//! reflections find. This is the array form of a Kalman filter in blocks (M. Morf, T. Kailath, "Square-root algorithms for
//! least-squares estimation", IEEE TAC 20, 1975).
//!
//! A row costs m² multiply-adds for L, m²/8 for reflecting 24 columns at a time, and 2·48·m for Q₂₂, 48 rows being taken
//! together; sums and factorisations take 1.62 m² at best. A strip of 8 rows is reflected by all columns left of it while it
//! is in the nearest cache. What is done to some rows of L needs nothing of the rows below, so that the next 48 rows can be
//! taken up by another thread right behind ([`Wave`]): results depend neither on the number of threads nor on who is first.
//!
//! Departures from the paper: reflections in place of rotations, of many columns and rows at a time; the last step.

mod panel;
#[cfg(test)]
mod tests;
mod wave;

use self::panel::{Column, Lined, Panel, WHOLE, apply, find, reflect};
pub use self::wave::Wave;
use super::aligned::Aligned;
use super::packed_rows::BLOCK;
use super::rank_update::{OnPanels, STRIP, on_panels};
use super::registers::Registers;
use faer::{ColRef, Mat, MatMut, MatRef};

/// Columns that are reflected together.
const PIVOTS: usize = BLOCK;
/// Strips of as many rows.
const STRIPS: usize = PIVOTS / STRIP;
/// Blocks of rows of (L, zᵀ) to which what was found is applied while it is at hand.
const TOGETHER: usize = 2;
/// Rows that are taken up together, at most.
pub const MOST_ROWS: usize = 48;

/// L and z.
#[derive(Debug, Clone, Default)]
pub struct ReflectedFactor {
    width: usize,
    outputs: usize,
    /// 24 rows of (L, zᵀ) each: of every 24 columns, up to the diagonal, three strips of 8 rows, column by column.
    blocks: Vec<Aligned<STRIP>>,
}

/// Where numbers of (L, zᵀ) are.
#[derive(Debug, Clone, Copy)]
struct Shape {
    width: usize,
    outputs: usize,
}

impl Shape {
    fn panels(self) -> usize {
        self.width.div_ceil(PIVOTS)
    }

    fn blocks(self) -> usize {
        (self.width + self.outputs).div_ceil(PIVOTS)
    }

    /// Columns of a strip of block `g`.
    fn columns(self, g: usize) -> usize {
        (g + 1).min(self.panels()) * PIVOTS
    }
}

impl ReflectedFactor {
    /// From L, and z of every output.
    pub fn new(lower: MatRef<'_, f64>, values: MatRef<'_, f64>) -> Self {
        let shape = Shape { width: lower.nrows(), outputs: values.ncols() };
        let blocks = (0..shape.blocks()).map(|g| Aligned::zeros(STRIPS * shape.columns(g))).collect();
        let mut factor = Self { width: shape.width, outputs: shape.outputs, blocks };
        for j in 0..shape.width {
            (j..shape.width).for_each(|i| *factor.entry(i, j) = lower[(i, j)]);
            (0..shape.outputs).for_each(|t| *factor.entry(shape.width + t, j) = values[(j, t)]);
        }
        factor
    }

    fn shape(&self) -> Shape {
        Shape { width: self.width, outputs: self.outputs }
    }

    fn place(&self, row: usize, col: usize) -> (usize, usize, usize) {
        let (within, strip) = (row % PIVOTS, row % PIVOTS / STRIP);
        (row / PIVOTS, (col / PIVOTS * STRIPS + strip) * PIVOTS + col % PIVOTS, within % STRIP)
    }

    fn entry(&mut self, row: usize, col: usize) -> &mut f64 {
        let (g, column, lane) = self.place(row, col);
        &mut self.blocks[g][column][lane]
    }

    /// Rows of L.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Columns of z.
    pub fn outputs(&self) -> usize {
        self.outputs
    }

    /// Writes L; what is above its diagonal stays.
    pub fn write_lower(&self, mut out: MatMut<'_, f64>) {
        for j in 0..self.width {
            for i in j..self.width {
                let (g, column, lane) = self.place(i, j);
                out[(i, j)] = self.blocks[g][column][lane];
            }
        }
    }

    /// z of every output.
    pub fn values(&self) -> Mat<f64> {
        Mat::from_fn(self.width, self.outputs, |j, t| {
            let (g, column, lane) = self.place(self.width + t, j);
            self.blocks[g][column][lane]
        })
    }

    /// x ← L⁻ᵀx.
    pub fn backward_in_place(&self, x: &mut [f64]) {
        for first in (0..self.width).step_by(STRIP).rev() {
            let (g, _, _) = self.place(first, 0);
            let column = |j: usize| &self.blocks[g][self.place(first, j).1];
            let rows = STRIP.min(self.width - first);
            let (left, own) = x[..first + rows].split_at_mut(first);
            for i in (0..rows).rev() {
                let later: f64 = (i + 1..rows).map(|k| column(first + i)[k] * own[k]).sum();
                own[i] = (own[i] - later) / column(first + i)[i];
            }
            let mut known = [0.0; STRIP];
            known[..rows].copy_from_slice(own);
            for (j, value) in left.iter_mut().enumerate() {
                *value -= column(j).iter().zip(&known).map(|(a, b)| a * b).sum::<f64>();
            }
        }
    }

    /// Bytes held.
    pub fn size_bytes(&self) -> usize {
        self.blocks.iter().map(Aligned::size_bytes).sum()
    }
}

/// Rows to be taken up.
#[derive(Debug, Clone, Copy)]
pub struct NewRows<'a> {
    /// Rows × width; at most [`MOST_ROWS`] of them.
    pub features: MatRef<'a, f64>,
    /// Rows × outputs.
    pub targets: MatRef<'a, f64>,
}

/// What was found of rows as they were taken up, in memory that is used again.
#[derive(Debug, Default)]
pub struct Reflecting {
    panels: Vec<Panel>,
    /// ε, output by output.
    rest: Vec<[f64; MOST_ROWS]>,
    errors: Vec<[f64; MOST_ROWS]>,
    variances: Vec<f64>,
}

impl Reflecting {
    /// The error of a row in an output, predicted from the rows before it.
    pub fn error(&self, row: usize, output: usize) -> f64 {
        self.errors[output][row]
    }

    /// The variance of a row's error over that of the noise.
    pub fn variance(&self, row: usize) -> f64 {
        self.variances[row]
    }

    /// Bytes held.
    pub fn size_bytes(&self) -> usize {
        self.panels.capacity() * size_of::<Panel>() + 8 * (2 * MOST_ROWS * self.rest.capacity() + MOST_ROWS)
    }

    /// Makes room.
    fn reserve(&mut self, shape: Shape) {
        self.panels.resize_with(shape.panels(), Panel::new);
        self.rest.resize(shape.outputs, [0.0; MOST_ROWS]);
        self.errors.resize(shape.outputs, [0.0; MOST_ROWS]);
        self.variances.resize(MOST_ROWS, 0.0);
    }

    /// Takes rows up; only when it is their turn.
    fn take_up(&mut self, wave: &Wave, turn: u64, rows: NewRows) {
        self.reserve(wave.shape());
        on_panels(TakeUp { wave, turn, rows, found: self });
    }
}

/// One turn.
struct TakeUp<'a, 'w> {
    wave: &'a Wave<'w>,
    turn: u64,
    rows: NewRows<'a>,
    found: &'a mut Reflecting,
}

impl OnPanels for TakeUp<'_, '_> {
    #[inline(always)]
    fn run<R: Registers>(self, registers: R) {
        let Self { wave, turn, rows, found } = self;
        let shape = wave.shape();
        // The innermost loops take so many rows.
        let height = rows.features.nrows().next_multiple_of(WHOLE);
        let Lined(blocks) = &mut Lined([[[[0.0; STRIP]; MOST_ROWS]; STRIPS]; TOGETHER]);
        for first in (0..shape.blocks()).step_by(TOGETHER) {
            let both = first..(first + TOGETHER).min(shape.blocks());
            both.clone().zip(&mut *blocks).for_each(|(g, block)| load(shape, rows, g, block));
            let mut numbers = [const { None }; TOGETHER];
            for (g, numbers) in both.clone().zip(&mut numbers) {
                *numbers = wave.wait(g, turn);
                if numbers.is_none() {
                    return;
                }
            }
            for (p, panel) in found.panels[..first.min(shape.panels())].iter().enumerate() {
                for (numbers, blocks) in numbers.iter_mut().flatten().zip(&mut *blocks) {
                    apply(registers, panel, &mut strips(numbers)[p], blocks, height);
                }
            }
            for ((g, mut numbers), blocks) in both.zip(numbers.into_iter().flatten()).zip(&mut *blocks) {
                let columns = strips(&mut numbers);
                for p in first..g.min(shape.panels()) {
                    apply(registers, &found.panels[p], &mut columns[p], blocks, height);
                }
                if g < shape.panels() {
                    let pivots = PIVOTS.min(shape.width - g * PIVOTS);
                    find(registers, &mut found.panels[g], &mut columns[g], blocks, pivots, height);
                }
                wave.pass(g, turn, numbers);
                for (t, rest) in found.rest.iter_mut().enumerate() {
                    let row = shape.width + t;
                    if row / PIVOTS == g {
                        let (strip, lane) = (row % PIVOTS / STRIP, row % STRIP);
                        *rest = std::array::from_fn(|k| if k < height { blocks[strip][k][lane] } else { 0.0 });
                    }
                }
            }
        }
        innovations(registers, found, height);
    }
}

/// The strips of a block of rows of (L, zᵀ), for every 24 columns.
fn strips(numbers: &mut Aligned<STRIP>) -> &mut [[[Column; PIVOTS]; STRIPS]] {
    let (columns, _) = numbers.as_chunks_mut::<PIVOTS>();
    columns.as_chunks_mut().0
}

/// The numbers of a block of rows of (Φᵀ, yᵀ).
#[inline(always)]
fn load(shape: Shape, rows: NewRows, g: usize, blocks: &mut [[Column; MOST_ROWS]; STRIPS]) {
    let count = rows.features.nrows();
    for (strip, block) in blocks.iter_mut().enumerate() {
        let first = g * PIVOTS + strip * STRIP;
        let column = |i: usize| -> Option<ColRef<'_, f64>> {
            match i.checked_sub(shape.width) {
                None => Some(rows.features.col(i)),
                Some(t) => (t < shape.outputs).then(|| rows.targets.col(t)),
            }
        };
        for lane in 0..STRIP {
            let numbers = column(first + lane);
            match numbers.and_then(|numbers| numbers.try_as_col_major()) {
                Some(numbers) => {
                    for (out, value) in block.iter_mut().zip(numbers.as_slice()) {
                        out[lane] = *value;
                    }
                }
                None => (0..count).for_each(|k| block[k][lane] = numbers.map_or(0.0, |numbers| numbers[k])),
            }
        }
        block[count..].fill([0.0; STRIP]);
    }
}

/// Errors and variances: Q₂₂ and ε to a triangle. Rows of Q₂₂ are taken from the last.
#[inline(always)]
fn innovations<R: Registers>(registers: R, found: &mut Reflecting, height: usize) {
    let Reflecting { panels, rest, errors, variances } = found;
    // Strips of Q₂₂, and after them ε.
    const OWN: usize = MOST_ROWS / STRIP;
    let own = height.div_ceil(STRIP);
    let Lined(turned) = &mut Lined([[[0.0; STRIP]; MOST_ROWS]; OWN]);
    for (s, strip) in turned.iter_mut().enumerate().take(own) {
        for lane in 0..STRIP.min(height.saturating_sub(s * STRIP)) {
            strip[height - 1 - (s * STRIP + lane)][lane] = 1.0;
        }
    }
    for panel in panels.iter() {
        for strips in turned[..own].as_chunks_mut::<STRIPS>().0 {
            let Lined(unused) = &mut Lined([[[0.0; STRIP]; PIVOTS]; STRIPS]);
            apply(registers, panel, unused, strips, height);
        }
    }
    for j in 0..height {
        let (s, lane) = (j / STRIP, j % STRIP);
        // The part of row j that is not known yet, as a vector whose first entry is 1.
        let mut vector: [f64; MOST_ROWS] = std::array::from_fn(|k| if k < j { 0.0 } else { turned[s][k][lane] });
        let alpha = vector[j];
        let length = vector[j..height].iter().map(|v| v * v).sum::<f64>().sqrt();
        let beta = if alpha < 0.0 { length } else { -length };
        let divisor = alpha - beta;
        let factor = if length == 0.0 { 0.0 } else { divisor / -beta };
        vector[j + 1..].iter_mut().for_each(|v| *v /= divisor);
        vector[j] = 1.0;
        // Whole sixes of columns, of which those before j are met by zeros.
        let from = j / 6 * 6;
        let none = [0.0; STRIP];
        for strip in &mut turned[s..own] {
            reflect(registers, &none, &mut strip[from..height], &vector[from..height], factor);
        }
        let row = height - 1 - j;
        for (rest, errors) in rest.iter_mut().zip(errors.iter_mut()) {
            let change = factor * (j..height).map(|k| rest[k] * vector[k]).sum::<f64>();
            (j..height).for_each(|k| rest[k] -= change * vector[k]);
            errors[row] = rest[j] / beta;
        }
        variances[row] = 1.0 / (beta * beta);
    }
}
