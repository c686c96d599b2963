//! Tables as flux prints them: no borders, upper-case headers, cells padded and parted by tabs.

/// The table as text, each line with its line end. An empty header is left out.
pub(crate) fn render(header: &[&str], rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).chain([header.len()]).max().unwrap_or(0);
    let mut widths = vec![0; columns];
    for (width, title) in widths.iter_mut().zip(header) {
        *width = display_width(title);
    }
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = cell.lines().map(display_width).max().unwrap_or(0).max(*width);
        }
    }
    let mut out = String::new();
    if !header.is_empty() {
        for (i, (title, width)) in header.iter().zip(&widths).enumerate() {
            pad(&mut out, &title.to_uppercase(), *width);
            out.push(if i + 1 == header.len() { ' ' } else { '\t' });
        }
        out.push('\n');
    }
    for row in rows {
        let cells: Vec<Vec<&str>> = row.iter().map(|cell| cell.split('\n').collect()).collect();
        let height = cells.iter().map(Vec::len).max().unwrap_or(1);
        for line in 0..height {
            for (i, width) in widths.iter().enumerate() {
                // A cell that has fewer lines than its neighbours holds two blanks there, as tablewriter fills it.
                let text = match cells.get(i) {
                    Some(lines) => lines.get(line).copied().unwrap_or("  "),
                    None => "",
                };
                pad(&mut out, text, *width);
                out.push('\t');
            }
            out.push('\n');
        }
    }
    out
}

fn pad(out: &mut String, text: &str, width: usize) {
    out.push_str(text);
    out.extend(std::iter::repeat_n(' ', width.saturating_sub(display_width(text))));
}

/// Columns a text takes in a terminal: wide characters take two.
fn display_width(text: &str) -> usize {
    text.chars()
        .map(|c| match c as u32 {
            0..=0x1f | 0x7f | 0x300..=0x36f | 0x200b..=0x200f | 0xfe00..=0xfe0f => 0,
            0x1100..=0x115f | 0x2e80..=0xa4cf | 0xac00..=0xd7a3 | 0xf900..=0xfaff | 0xfe30..=0xfe6f => 2,
            0xff00..=0xff60 | 0xffe0..=0xffe6 | 0x1f300..=0x1f64f | 0x1f900..=0x1f9ff | 0x20000..=0x3fffd => {
                2
            }
            _ => 1,
        })
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(rows: &[&[&str]]) -> Vec<Vec<String>> {
        rows.iter().map(|row| row.iter().map(|c| (*c).to_owned()).collect()).collect()
    }

    #[test]
    fn every_cell_is_padded_and_the_header_ends_in_a_blank() {
        let table = render(&["Name", "Ready"], &rows(&[&["a-long-one", "True"], &["b", "False"]]));
        assert_eq!(table, "NAME      \tREADY \na-long-one\tTrue \t\nb         \tFalse\t\n");
    }

    #[test]
    fn without_a_header_the_rows_decide_the_widths() {
        assert_eq!(render(&[], &rows(&[&["a", "", "xy"]])), "a\t\txy\t\n");
        assert_eq!(render(&["Name"], &[]), "NAME \n");
        assert_eq!(render(&[], &[]), "");
    }

    #[test]
    fn line_breaks_take_further_lines() {
        assert_eq!(render(&["A", "B"], &rows(&[&["x", "one\ntwo"]])), "A\tB   \nx\tone\t\n  \ttwo\t\n");
    }
}
