//! The end of a file is known: what of the bytes after the last good seal counts. The rules stand at the head of
//! `replay.rs`.

use super::{Damage, Replay, Sealed, Step};
use crate::aof::seal;
use crate::aof::tail::{SealSearch, zero_sector};
use crate::aof::verdict::{Cut, End, Reason, ReplayError};

impl Replay {
    /// The file has no more bytes: decides about its tail. Records of it that count come from [`Replay::next_record`] then.
    pub fn finish(&mut self) -> Result<End, ReplayError> {
        self.look_again = 0;
        while self.step() == Step::Advanced {}
        self.finished = true;
        if let Some(error) = self.misplaced {
            return Err(error);
        }
        if self.damage.is_none() {
            self.examine_tail();
        }
        let cause = match self.damage.take() {
            None => {
                self.accept_units(self.fed);
                (self.accepted, Reason::EndsEarly)
            }
            Some(damage) => self.judge(damage)?,
        };
        self.held.records.truncate(self.held.ready);
        self.end(cause)
    }

    /// Takes the whole units that end at `limit` or before into what counts.
    pub(super) fn accept_units(&mut self, limit: u64) {
        let Some(sealed) = &mut self.seals else { return };
        let from = (sealed.summed - self.buffer_offset) as usize;
        let to = (limit - self.buffer_offset) as usize;
        let hole = if sealed.streaming { None } else { zero_sector(&self.buffer[from..to], sealed.summed) };
        let limit = hole.unwrap_or(limit);
        if let Some(unit) = sealed.units.iter().rev().find(|unit| unit.end <= limit) {
            let to = (unit.end - self.buffer_offset) as usize;
            sealed.running.absorb(&self.buffer[from..to]);
            sealed.summed = unit.end;
            self.accepted = unit.end;
            self.held.ready = unit.records;
            sealed.units.clear();
        }
    }

    /// The file ends and nothing looked wrong: looks at what stands after the last seal once more.
    fn examine_tail(&mut self) {
        let Some(sealed) = &self.seals else { return };
        if sealed.streaming {
            return;
        }
        let from = (sealed.end - self.buffer_offset) as usize;
        let mut search = SealSearch::new(sealed.last.position());
        search.feed(&self.buffer[from..]);
        let reason = if search.found {
            Reason::SwallowedSeal
        } else if sealed.unknown_annotation.is_some() {
            Reason::UnknownAnnotation
        } else if !self.cut_line_fits(sealed) {
            Reason::DamagedLine
        } else {
            return;
        };
        self.damage_at(from, reason);
    }

    /// Whether an annotation that the end of the file cut can be one of those that stand here.
    fn cut_line_fits(&self, sealed: &Sealed) -> bool {
        let line = &self.buffer[self.scan..];
        // Zeros at the end of the file are bytes that never arrived.
        let line = &line[..line.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1)];
        if !line.starts_with(b"#") || seal::is_cut_timestamp(line) {
            return true;
        }
        let summed = (sealed.summed - self.buffer_offset) as usize;
        let mut running = sealed.running;
        running.absorb(&self.buffer[summed..self.scan]);
        self.transaction.is_none() && seal::agrees_with(line, running.position(), running.chain())
    }

    /// Damage and the end of the file are known: cut, or refuse. Returns where and what was wrong.
    fn judge(&mut self, damage: Damage) -> Result<(u64, Reason), ReplayError> {
        let Damage { offset, reason, zeros_only, search } = damage;
        let torn = match (&self.seals, &search) {
            (Some(sealed), Some(search)) => !search.synced_past && !sealed.streaming,
            (Some(_) | None, _) => zeros_only,
        };
        if !torn {
            return Err(ReplayError::Damaged { offset, reason, keep: self.accepted });
        }
        if zeros_only && !search.is_some_and(|search| search.found) {
            self.accept_units(offset);
            return Ok((offset, Reason::EndsEarly));
        }
        Ok((offset, reason))
    }

    fn end(&mut self, (offset, reason): (u64, Reason)) -> Result<End, ReplayError> {
        let keep = self.accepted;
        let dropped = self.fed - keep;
        if dropped > 0 && !self.options.load_truncated {
            return Err(ReplayError::Truncated { offset, reason, keep });
        }
        let waiting = (self.held.ready - self.held.next) as u64;
        let sealed = self.sealed().0;
        Ok(End {
            keep,
            sealed,
            vouched: self.is_vouched && sealed == keep,
            synced: self.marks.first().map_or(keep, |(_, end)| keep.min(*end)),
            cut: (dropped > 0).then_some(Cut { offset, reason, dropped }),
            sealer: self.seals.as_ref().map(|sealed| sealed.running),
            records: self.held.count + waiting,
            seals: self.seal_count,
        })
    }
}
