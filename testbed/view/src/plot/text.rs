//! Width of text, and room for labels.

/// A box in a drawing, in pixels: left, top, width, height.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct LabelArea {
    pub(super) x: f64,
    pub(super) y: f64,
    pub(super) w: f64,
    pub(super) h: f64,
}

impl LabelArea {
    fn touches(&self, other: &Self) -> bool {
        self.x < other.x + other.w
            && other.x < self.x + self.w
            && self.y < other.y + other.h
            && other.y < self.y + self.h
    }

    fn holds(&self, other: &Self) -> bool {
        other.x >= self.x
            && other.y >= self.y
            && other.x + other.w <= self.x + self.w
            && other.y + other.h <= self.y + self.h
    }
}

/// Width of a text of this font size, in the widest font that may be used, in pixels.
pub(super) fn width(text: &str, size: f64) -> f64 {
    let em: f64 = text
        .chars()
        .map(|c| match c {
            'i' | 'j' | 'l' | 'I' | '.' | ',' | ':' | ';' | '\'' | '|' | ' ' | '!' => 0.35,
            'f' | 't' | 'r' | '(' | ')' | '[' | ']' | '-' | '/' => 0.42,
            'm' | 'w' | 'M' | 'W' | '%' | '@' | '…' | '→' => 0.98,
            'A'..='Z' => 0.71,
            _ => 0.63,
        })
        .sum();
    em * size
}

/// Areas of a panel that already have a mark or a text, so that no label may cover them.
#[derive(Debug, Default)]
pub(super) struct TakenAreas(Vec<LabelArea>);

impl TakenAreas {
    pub(super) fn take(&mut self, area: LabelArea) {
        self.0.push(area);
    }

    /// Reserves room for a label beside a mark at `(x, y)`, inside `bounds`; returns the left end of the label's
    /// baseline, or `None` if there is no room.
    pub(super) fn beside(
        &mut self,
        (x, y): (f64, f64),
        label: &str,
        size: f64,
        bounds: &LabelArea,
    ) -> Option<(f64, f64)> {
        let (w, h) = (width(label, size), size * 1.15);
        // First at the sides, above, below and at the corners; then the same further away.
        let around = |gap: f64| {
            let (left, middle, right) = (x - gap - w, x - w / 2.0, x + gap);
            let (above, below) = (y - gap - h * 0.7, y + gap * 0.6);
            [
                (right, y - h / 2.0),
                (left, y - h / 2.0),
                (middle, y - gap - h),
                (middle, y + gap),
                (right, above),
                (right, below),
                (left, above),
                (left, below),
            ]
        };
        let area =
            [8.0, 14.0].into_iter().flat_map(around).map(|(x, y)| LabelArea { x, y, w, h }).find(
                |area| bounds.holds(area) && !self.0.iter().any(|other| other.touches(area)),
            )?;
        self.take(area);
        Some((area.x, area.y + size * 0.92))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_never_touch() {
        let bounds = LabelArea { x: 0.0, y: 0.0, w: 300.0, h: 200.0 };
        let mut taken = TakenAreas::default();
        let at = |n: u32| (f64::from(n % 9) * 35.0, f64::from(n / 9) * 12.0);
        let placed = (0..90).filter(|&n| taken.beside(at(n), "sc2/hads", 10.0, &bounds).is_some());
        assert!(placed.count() > 20);
        for (n, a) in taken.0.iter().enumerate() {
            assert!(bounds.holds(a));
            assert!(taken.0[..n].iter().all(|b| !a.touches(b)), "{a:?}");
        }
    }
}
