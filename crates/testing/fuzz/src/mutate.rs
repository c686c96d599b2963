//! Seeded mutations: the same seed and seeds give the same inputs, so a crash can be replayed.

const LONGEST: usize = 1 << 16;

/// A small xorshift generator; statistical quality does not matter here, repeatability does.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, below: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % (below.max(1) as u64)).unwrap_or(0)
    }
}

/// Makes new inputs out of the seeds of a target.
pub(crate) struct Mutator {
    dice: Dice,
    pool: Vec<Vec<u8>>,
}

impl Mutator {
    pub(crate) fn new(seed: u64, seeds: &[Vec<u8>]) -> Self {
        let pool = if seeds.is_empty() { vec![Vec::new()] } else { seeds.to_vec() };
        Self { dice: Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1), pool }
    }

    pub(crate) fn next_input(&mut self) -> Vec<u8> {
        let mut input = self.pool[self.dice.roll(self.pool.len())].clone();
        for _ in 0..=self.dice.roll(6) {
            self.mutate(&mut input);
        }
        input.truncate(LONGEST);
        input
    }

    fn mutate(&mut self, input: &mut Vec<u8>) {
        let at = self.dice.roll(input.len() + 1);
        let end = (at + 1 + self.dice.roll(32)).min(input.len()).max(at);
        match self.dice.roll(7) {
            0 if at < input.len() => input[at] ^= 1 << self.dice.roll(8),
            1 if at < input.len() => input[at] = self.dice.roll(256) as u8,
            2 => drop(input.drain(at..end)),
            3 => {
                let copy = input[at..end].to_vec();
                let to = self.dice.roll(input.len() + 1);
                input.splice(to..to, copy);
            }
            4 => {
                // A piece of another seed: structure that random bytes would hardly find.
                let other = &self.pool[self.dice.roll(self.pool.len())];
                let from = self.dice.roll(other.len() + 1);
                let until = (from + self.dice.roll(48)).min(other.len());
                let piece = other[from..until].to_vec();
                input.splice(at..at, piece);
            }
            5 => {
                const TRICKY: &[u8] = b"\0\n\t {}[]:-#&*!|>'\"%@`,?~\\/.$()\x7f\xff\xc3\xef\xbb\xbf";
                input.insert(at, TRICKY[self.dice.roll(TRICKY.len())]);
            }
            _ => {
                let copy = input[at..end].to_vec();
                for _ in 0..self.dice.roll(64) {
                    input.splice(at..at, copy.iter().copied());
                    if input.len() > LONGEST {
                        break;
                    }
                }
            }
        }
    }
}

/// A stable name for an input (FNV-1a).
pub(crate) fn fingerprint(input: &[u8]) -> u64 {
    input.iter().fold(0xcbf2_9ce4_8422_2325, |h, b| (h ^ u64::from(*b)).wrapping_mul(0x0100_0000_01b3))
}
