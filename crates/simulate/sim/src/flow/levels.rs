//! The most that pairs can all have at the same time, where each splits over its paths: a linear program.
//!
//! ```text
//!   maximize t     Σ x(p) over paths p that cross r   ≤ capacity(r)         for each resource r
//!                  t ≤ Σ x(p) over the paths of i     ≤ most(i)             for each pair i that still rises
//!                  rate(i) ≤ Σ x(p) over its paths                          for each pair i that has stopped
//! ```
//! An interior-point method (S. Mehrotra, "On the implementation of a primal-dual interior point method", SIAM J. Optim. 2(4),
//! 1992): it ends in the middle of all best solutions, so a pair that can rise further is seen to have more than `t`.
//! Pairs and `t` are eliminated by hand (Sherman and Morrison); what is left is a symmetric matrix over the resources that can
//! be full at all. Cost: O(resources³) an iteration, of which there are 10 to 30.

/// Iterations at most; each divides the gap by ten or so.
const ITERATIONS_MAX: usize = 80;
/// The program is solved when the best possible `t` is no farther than this, relatively.
///
/// The nearer, the worse rounding gets: what is eliminated by hand is a difference of large numbers near the end.
const GAP: f64 = 1e-4;
/// Where it gets no nearer, this is near enough.
const GAP_MAX: f64 = 5e-3;
/// Of the way to where a variable would be 0.
const STEP: f64 = 0.99;
/// Rows of the matrix that are worked on while they are in the processor's cache.
const BLOCK: usize = 48;

/// A pair of the program.
pub(super) struct Pair {
    /// The rows that each of its paths crosses.
    pub(super) paths: Vec<Vec<u32>>,
    /// The least that it is to have; none if that is `t`.
    pub(super) least: Option<f64>,
    /// The most that it can have.
    pub(super) most: f64,
}

/// A solution.
pub(super) struct Level {
    pub(super) t: f64,
    /// How far from the best `t` may be, relatively.
    gap: f64,
    /// `flow[pair][path]`.
    pub(super) flow: Vec<Vec<f64>>,
    /// `price[pair]`: what raising its least costs all others, 1 on average over those that rise; 0 but for pairs that cannot
    /// rise.
    pub(super) price: Vec<f64>,
}

/// A variable that is not negative, and its dual.
#[derive(Clone, Copy)]
struct Slack {
    value: f64,
    dual: f64,
    /// How far its equation is from holding.
    residual: f64,
    /// What the product of both is to change by.
    target: f64,
    value_step: f64,
    dual_step: f64,
}

impl Slack {
    fn at(value: f64) -> Self {
        Self { value: value.max(0.1), dual: 1.0, residual: 0.0, target: 0.0, value_step: 0.0, dual_step: 0.0 }
    }

    fn weight(&self) -> f64 {
        self.dual / self.value
    }

    /// What it adds to the right-hand side, by its sign in the row.
    fn pull(&self) -> f64 {
        (self.target + self.dual * self.residual) / self.value
    }

    fn aim(&mut self, center: f64, corrected: bool) {
        let second_order = if corrected { self.value_step * self.dual_step } else { 0.0 };
        self.target = center - self.value * self.dual - second_order;
    }

    fn step(&mut self, value_step: f64) {
        self.value_step = value_step;
        self.dual_step = (self.target - self.dual * value_step) / self.value;
    }
}

struct Program<'a> {
    pairs: &'a [Pair],
    capacity: &'a [f64],
    /// The pair of each path, and its rows; paths of a pair are together.
    owner: Vec<u32>,
    rows: Vec<&'a [u32]>,
    /// `first[pair]`: its first path.
    first: Vec<usize>,
    rising: f64,
    t: f64,
    t_step: f64,
    /// By path: the flow itself.
    flow: Vec<Slack>,
    /// By row: what is left of the capacity.
    room: Vec<Slack>,
    /// By pair: what it has above its least, and below its most.
    above: Vec<Slack>,
    below: Vec<Slack>,
    /// The matrix's lower half, then its factor.
    matrix: Vec<f64>,
}

/// Solves the program, as near as rounding lets it. Rates should be of the order of 1.
pub(super) fn solve(pairs: &[Pair], capacity: &[f64]) -> Level {
    let mut program = Program::new(pairs, capacity);
    let mut best = (f64::INFINITY, program.level());
    for _ in 0..ITERATIONS_MAX {
        let gap = program.gap();
        if gap < best.0 {
            best = (gap, program.level());
        }
        // Near the end rounding wins, and what follows is worse and worse.
        if best.0 <= GAP || best.0 <= GAP_MAX && (gap.is_nan() || gap >= 10.0 * best.0) {
            break;
        }
        program.iterate();
    }
    Level { gap: best.0, ..best.1 }
}

impl Level {
    /// Whether it is near enough to the best.
    pub(super) fn is_solved(&self) -> bool {
        self.gap <= GAP_MAX
    }
}

impl<'a> Program<'a> {
    fn new(pairs: &'a [Pair], capacity: &'a [f64]) -> Self {
        let (mut owner, mut rows, mut first, mut flow) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for (index, pair) in pairs.iter().enumerate() {
            first.push(rows.len());
            for path in &pair.paths {
                owner.push(index as u32);
                rows.push(path.as_slice());
                flow.push(Slack::at(pair.least.unwrap_or(pair.most / 2.0) / pair.paths.len() as f64));
            }
        }
        first.push(rows.len());
        let rising = pairs.iter().filter(|pair| pair.least.is_none()).count() as f64;
        let room = capacity.iter().map(|capacity| Slack::at(capacity / 2.0)).collect();
        let above = pairs.iter().map(|pair| Slack::at(pair.most / 4.0)).collect();
        let below = pairs.iter().map(|pair| Slack::at(pair.most / 4.0)).collect();
        let matrix = vec![0.0; capacity.len() * capacity.len()];
        Self { pairs, capacity, owner, rows, first, rising, t: 0.0, t_step: 0.0, flow, room, above, below, matrix }
    }

    fn paths(&self, pair: usize) -> std::ops::Range<usize> {
        self.first[pair]..self.first[pair + 1]
    }

    fn rate(&self, pair: usize) -> f64 {
        self.flow[self.paths(pair)].iter().map(|flow| flow.value).sum()
    }

    fn slacks(&mut self) -> impl Iterator<Item = &mut Slack> {
        self.flow.iter_mut().chain(&mut self.room).chain(&mut self.above).chain(&mut self.below)
    }

    /// How far each equation is from holding.
    fn see_residuals(&mut self) {
        let mut used = vec![0.0; self.capacity.len()];
        for (rows, flow) in self.rows.iter().zip(&self.flow) {
            rows.iter().for_each(|row| used[*row as usize] += flow.value);
        }
        for ((room, used), capacity) in self.room.iter_mut().zip(used).zip(self.capacity) {
            room.residual = used + room.value - capacity;
        }
        for pair in 0..self.pairs.len() {
            let (rate, Pair { least, most, .. }) = (self.rate(pair), &self.pairs[pair]);
            self.above[pair].residual = least.unwrap_or(self.t) + self.above[pair].value - rate;
            self.below[pair].residual = rate + self.below[pair].value - most;
        }
    }

    /// The mean product of the variables and their duals: 0 at the best solution.
    fn products(&mut self) -> (f64, f64) {
        let (sum, count) =
            self.slacks().fold((0.0, 0.0), |(sum, count), slack| (sum + slack.value * slack.dual, count + 1.0));
        (sum, sum / count)
    }

    /// How far from `t` the best may be, and how far equations are from holding, relatively.
    fn gap(&mut self) -> f64 {
        self.see_residuals();
        let (products, _) = self.products();
        let residual = self.slacks().fold(0.0, |most: f64, slack| most.max(slack.residual.abs()));
        if self.t > 0.0 {
            (products / (self.rising * self.t)).max(residual / self.t).max(self.dual_residual())
        } else {
            f64::INFINITY
        }
    }

    fn level(&self) -> Level {
        let flow = (0..self.pairs.len()).map(|pair| self.paths(pair).map(|path| self.flow[path].value).collect());
        let price = self.above.iter().map(|above| above.dual).collect();
        Level { t: self.t, gap: f64::INFINITY, flow: flow.collect(), price }
    }

    /// How far the duals' equations are from holding.
    fn dual_residual(&self) -> f64 {
        let of_path = |path: usize| {
            let pair = self.owner[path] as usize;
            let prices: f64 = self.rows[path].iter().map(|row| self.room[*row as usize].dual).sum();
            (prices - self.above[pair].dual + self.below[pair].dual - self.flow[path].dual).abs()
        };
        let above = self.pairs.iter().zip(&self.above).filter(|(pair, _)| pair.least.is_none());
        let of_t = (above.map(|(_, above)| above.dual).sum::<f64>() / self.rising - 1.0).abs();
        (0..self.rows.len()).map(of_path).fold(of_t, f64::max)
    }

    /// One step of Mehrotra's: where straight on would lead, and from that how much to keep to the middle.
    fn iterate(&mut self) {
        let (_, mean) = self.products();
        let system = self.factor();
        self.slacks().for_each(|slack| slack.aim(0.0, false));
        self.solve(&system);
        let (far, far_dual) = self.reach(1.0);
        let (sum, count) = self.slacks().fold((0.0, 0.0), |(sum, count), slack| {
            let product = (slack.value + far * slack.value_step) * (slack.dual + far_dual * slack.dual_step);
            (sum + product, count + 1.0)
        });
        let center = (sum / count / mean).powi(3).clamp(1e-8, 1.0) * mean;
        self.slacks().for_each(|slack| slack.aim(center, true));
        self.solve(&system);
        let (step, dual_step) = self.reach(STEP);
        self.t += step * self.t_step;
        self.slacks().for_each(|slack| {
            slack.value += step * slack.value_step;
            slack.dual += dual_step * slack.dual_step;
        });
    }

    /// How far variables and duals can go until one of them is 0, of the whole step and of that way.
    fn reach(&mut self, part: f64) -> (f64, f64) {
        let until = |value: f64, step: f64| if step < 0.0 { -value / step } else { f64::INFINITY };
        let (mut far, mut far_dual) = (f64::INFINITY, f64::INFINITY);
        for slack in self.slacks() {
            far = far.min(until(slack.value, slack.value_step));
            far_dual = far_dual.min(until(slack.dual, slack.dual_step));
        }
        ((part * far).min(1.0), (part * far_dual).min(1.0))
    }

    /// Assembles the matrix over the rows and factors it.
    fn factor(&mut self) -> Blocks {
        let (size, pairs) = (self.capacity.len(), self.pairs.len());
        let mut blocks = Blocks { denominator: Vec::with_capacity(pairs), border: 0.0 };
        self.matrix.fill(0.0);
        for (row, room) in self.room.iter().enumerate() {
            self.matrix[row * size + row] = 1.0 / room.weight();
        }
        let (mut sum, mut border, mut touched) = (vec![0.0; size], vec![0.0; size], Vec::new());
        let (mut own, mut apart) = (Vec::new(), Vec::new());
        for pair in 0..pairs {
            let (above, below) = (self.above[pair].weight(), self.below[pair].weight());
            let paths = self.paths(pair);
            let total: f64 = self.flow[paths.clone()].iter().map(|flow| 1.0 / flow.weight()).sum();
            let denominator = 1.0 + (above + below) * total;
            for path in paths.clone() {
                let give = 1.0 / self.flow[path].weight();
                for &row in self.rows[path] {
                    if sum[row as usize] == 0.0 {
                        touched.push(row);
                    }
                    sum[row as usize] += give;
                }
            }
            touched.sort_unstable();
            // As sums of squares, since differences of large numbers would be left of the shorter form.
            own.clear();
            own.extend(touched.iter().map(|row| sum[*row as usize] / total));
            self.add_square(&touched, &own, total / denominator);
            for path in paths {
                let crosses = |row: &u32| if self.rows[path].contains(row) { 1.0 } else { 0.0 };
                apart.clear();
                apart.extend(touched.iter().zip(&own).map(|(row, mean)| crosses(row) - mean));
                self.add_square(&touched, &apart, 1.0 / self.flow[path].weight());
            }
            if self.pairs[pair].least.is_none() {
                blocks.border += above * (1.0 + below * total) / denominator;
                touched.iter().for_each(|row| border[*row as usize] += above * sum[*row as usize] / denominator);
            }
            touched.drain(..).for_each(|row| sum[row as usize] = 0.0);
            blocks.denominator.push(denominator);
        }
        for row in 0..size {
            let factor = border[row] / blocks.border;
            let line = &mut self.matrix[row * size..=row * size + row];
            line.iter_mut().zip(&border).for_each(|(cell, other)| *cell += factor * other);
        }
        factor_in_place(&mut self.matrix, size);
        blocks
    }

    /// Adds the square of a vector that is 0 but for some rows, ascending.
    fn add_square(&mut self, rows: &[u32], vector: &[f64], factor: f64) {
        let size = self.capacity.len();
        for (at, &row) in rows.iter().enumerate() {
            let line = &mut self.matrix[row as usize * size..];
            let amount = factor * vector[at];
            rows[..=at].iter().zip(vector).for_each(|(other, value)| line[*other as usize] += amount * value);
        }
    }

    /// The steps of all variables and duals for their targets.
    fn solve(&mut self, blocks: &Blocks) {
        let mut right = Vec::with_capacity(self.rows.len());
        for (path, rows) in self.rows.iter().enumerate() {
            let pair = self.owner[path] as usize;
            let (flow, above, below) = (&self.flow[path], &self.above[pair], &self.below[pair]);
            let prices: f64 =
                rows.iter().map(|row| self.room[*row as usize].dual + self.room[*row as usize].pull()).sum();
            let own = above.dual + above.pull() - below.dual - below.pull() + flow.dual + flow.target / flow.value;
            right.push(own - prices);
        }
        let of_rising: f64 = (self.pairs.iter().zip(&self.above))
            .filter(|(pair, _)| pair.least.is_none())
            .map(|(_, above)| above.dual + above.pull())
            .sum();
        let right_t = self.rising - of_rising;
        let (mut steps, mut t_step) = self.by_elimination(blocks, &right, right_t);
        // Twice more for what rounding has left.
        for _ in 0..2 {
            let (left, left_t) = self.left_of(&right, right_t, &steps, t_step);
            let (more, more_t) = self.by_elimination(blocks, &left, left_t);
            steps.iter_mut().zip(more).for_each(|(step, more)| *step += more);
            t_step += more_t;
        }
        self.t_step = t_step;
        let used = self.by_row(&steps);
        for (room, used) in self.room.iter_mut().zip(used) {
            let step = -room.residual - used;
            room.step(step);
        }
        for pair in 0..self.pairs.len() {
            let rate: f64 = steps[self.paths(pair)].iter().sum();
            let rises = if self.pairs[pair].least.is_none() { t_step } else { 0.0 };
            let (above, below) = (&mut self.above[pair], &mut self.below[pair]);
            above.step(rate - rises - above.residual);
            below.step(-rate - below.residual);
        }
        self.flow.iter_mut().zip(steps).for_each(|(flow, step)| flow.step(step));
    }

    /// The solution by the factor.
    fn by_elimination(&self, blocks: &Blocks, right: &[f64], right_t: f64) -> (Vec<f64>, f64) {
        let (free, _) = self.without_rows(blocks, right, right_t);
        let mut rows = self.by_row(&free);
        substitute(&self.matrix, &mut rows);
        let right = right.iter().zip(&self.rows);
        let right: Vec<f64> =
            right.map(|(right, crossed)| right - crossed.iter().map(|row| rows[*row as usize]).sum::<f64>()).collect();
        self.without_rows(blocks, &right, right_t)
    }

    /// What a solution misses of the right-hand side.
    fn left_of(&self, right: &[f64], right_t: f64, steps: &[f64], t_step: f64) -> (Vec<f64>, f64) {
        let mut prices = self.by_row(steps);
        prices.iter_mut().zip(&self.room).for_each(|(used, room)| *used *= room.weight());
        let (mut left, mut left_t) = (right.to_vec(), right_t);
        for pair in 0..self.pairs.len() {
            let (above, below) = (self.above[pair].weight(), self.below[pair].weight());
            let rate: f64 = steps[self.paths(pair)].iter().sum();
            let rises = if self.pairs[pair].least.is_none() { t_step } else { 0.0 };
            for path in self.paths(pair) {
                let crossed: f64 = self.rows[path].iter().map(|row| prices[*row as usize]).sum();
                left[path] -= self.flow[path].weight() * steps[path] + above * (rate - rises) + below * rate + crossed;
            }
            if self.pairs[pair].least.is_none() {
                left_t += above * (rate - rises);
            }
        }
        (left, left_t)
    }

    /// The solution if there were no rows: pair by pair, and `t`.
    fn without_rows(&self, blocks: &Blocks, right: &[f64], right_t: f64) -> (Vec<f64>, f64) {
        let (mut steps, mut t_step) = (vec![0.0; right.len()], right_t);
        for pair in 0..self.pairs.len() {
            let above = self.above[pair].weight();
            let paths = self.paths(pair);
            let total: f64 = paths.clone().map(|path| 1.0 / self.flow[path].weight()).sum();
            let mean = paths.clone().map(|path| right[path] / self.flow[path].weight()).sum::<f64>() / total;
            let rate = mean * total / blocks.denominator[pair];
            for path in paths {
                let apart = right[path] - mean + mean / blocks.denominator[pair];
                steps[path] = apart / self.flow[path].weight();
            }
            if self.pairs[pair].least.is_none() {
                t_step += above * rate;
            }
        }
        t_step /= blocks.border;
        for (path, step) in steps.iter_mut().enumerate() {
            let pair = self.owner[path] as usize;
            if self.pairs[pair].least.is_none() {
                *step += t_step * self.above[pair].weight() / self.flow[path].weight() / blocks.denominator[pair];
            }
        }
        (steps, t_step)
    }

    fn by_row(&self, by_path: &[f64]) -> Vec<f64> {
        let mut rows = vec![0.0; self.capacity.len()];
        for (crossed, amount) in self.rows.iter().zip(by_path) {
            crossed.iter().for_each(|row| rows[*row as usize] += amount);
        }
        rows
    }
}

/// What eliminating pairs and `t` leaves.
struct Blocks {
    /// By pair.
    denominator: Vec<f64>,
    border: f64,
}

/// Cholesky's factor in the place of the lower half. A pivot that is nothing but rounding ends its row.
fn factor_in_place(matrix: &mut [f64], size: usize) {
    for start in (0..size).step_by(BLOCK) {
        for row in start..size {
            let (above, line) = matrix.split_at_mut(row * size);
            for column in start..(start + BLOCK).min(row + 1) {
                if column == row {
                    let pivot = line[row] - dot(&line[..row], &line[..row]);
                    line[row] = if pivot > 1e-15 * line[row] { pivot.sqrt() } else { 1e64 };
                } else {
                    let other = &above[column * size..=column * size + column];
                    line[column] = (line[column] - dot(&line[..column], &other[..column])) / other[column];
                }
            }
        }
    }
}

/// Solves with the factor, in place.
fn substitute(factor: &[f64], right: &mut [f64]) {
    let size = right.len();
    for row in 0..size {
        let line = &factor[row * size..=row * size + row];
        right[row] = (right[row] - dot(&line[..row], &right[..row])) / line[row];
    }
    for row in (0..size).rev() {
        let line = &factor[row * size..=row * size + row];
        right[row] /= line[row];
        let value = right[row];
        right[..row].iter_mut().zip(line).for_each(|(right, cell)| *right -= value * cell);
    }
}

/// The product of two vectors, in lanes that do not wait for each other.
fn dot(a: &[f64], b: &[f64]) -> f64 {
    let mut lanes = [0.0; 8];
    let (whole, rest) = (a.chunks_exact(8), b.chunks_exact(8));
    let tail: f64 = whole.remainder().iter().zip(rest.remainder()).map(|(a, b)| a * b).sum();
    for (a, b) in whole.zip(rest) {
        lanes.iter_mut().zip(a.iter().zip(b)).for_each(|(lane, (a, b))| *lane += a * b);
    }
    lanes.iter().sum::<f64>() + tail
}
