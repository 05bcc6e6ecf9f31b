//! Letters as strokes, so that a PNG needs no font: clusters' head nodes often have none.
//!
//! A letter is a few polylines on a grid of five columns, two digits a point: column, and row with the base line at 2.
//!
//! ```text
//!   8  /\        "022842" is (0,2) (2,8) (4,2)
//!   5 /--\       "1434"   is (1,4) (3,4)
//!   2/    \
//!    0 2 4
//! ```

/// Letters and their strokes; capitals reach row 8, small ones row 6, tails row 0.
const LETTERS: &[(char, &str)] = &[
    (' ', ""),
    ('!', "2824 2223"),
    ('"', "1817 3837"),
    ('#', "1218 3238 0444 0646"),
    ('%', "0248 0818170708 3343423233"),
    ('&', "42081828260403122244"),
    ('\'', "2827"),
    ('(', "38262432"),
    (')', "18262412"),
    ('*', "2723 0545 1634"),
    ('+', "0545 2723"),
    (',', "2311"),
    ('-', "1535"),
    ('.', "2223"),
    ('/', "0248"),
    ('0', "120307183847433212 0347"),
    ('1', "172822 1232"),
    ('2', "07183847460242"),
    ('3', "07183847463525 354443321203"),
    ('4', "32380444"),
    ('5', "480805354443321203"),
    ('6', "38180703123243443505"),
    ('7', "084812"),
    ('8', "15060718384746351504031232434435"),
    ('9', "45150607183847433212"),
    (':', "2223 2526"),
    ('<', "470543"),
    ('=', "0646 0444"),
    ('>', "074503"),
    ('A', "022842 1434"),
    ('B', "02083847463505 3544433202"),
    ('C', "4738180703123243"),
    ('D', "02082846442202"),
    ('E', "48080242 0535"),
    ('F', "480802 0535"),
    ('G', "47381807031232434525"),
    ('H', "0208 4248 0545"),
    ('I', "1838 2822 1232"),
    ('J', "4843321203"),
    ('K', "0208 480542"),
    ('L', "080242"),
    ('M', "0208254842"),
    ('N', "02084248"),
    ('O', "120307183847433212"),
    ('P', "02083847463505"),
    ('Q', "120307183847433212 2442"),
    ('R', "02083847463505 2542"),
    ('S', "473818070615354443321203"),
    ('T', "0848 2822"),
    ('U', "080312324348"),
    ('V', "082248"),
    ('W', "0812263248"),
    ('X', "0248 0842"),
    ('Y', "082548 2522"),
    ('Z', "08480242"),
    ('[', "38181232"),
    (']', "18383212"),
    ('_', "0141"),
    ('a', "16364542 441403123243"),
    ('b', "0802 0516364543321203"),
    ('c', "4536160503123243"),
    ('d', "4842 4536160503123243"),
    ('e', "04444536160503123243"),
    ('f', "48382722 1636"),
    ('g', "4641301001 4536160503123243"),
    ('h', "0802 0516364542"),
    ('i', "2622 2827"),
    ('j', "26211000 2827"),
    ('k', "0802 360442"),
    ('l', "18282332"),
    ('m', "0602 05162522 25364542"),
    ('n', "0602 0516364542"),
    ('o', "120305163645433212"),
    ('p', "0600 0516364543321203"),
    ('q', "4640 4536160503123243"),
    ('r', "0602 05163645"),
    ('s', "45361605143443321203"),
    ('t', "28233242 1636"),
    ('u', "0603123243 4642"),
    ('v', "062246"),
    ('w', "0612243246"),
    ('x', "0246 0642"),
    ('y', "0622 461000"),
    ('z', "06460242"),
    ('|', "2820"),
    ('~', "05162534"),
    ('×', "0346 0643"),
];
/// What stands for any other letter: an empty box.
const UNKNOWN: &str = "0208484202";
/// Columns from one letter to the next.
const ADVANCE: f64 = 5.4;

/// The strokes of a text whose letters are `size` high with tails, from (0, 0) at the left of its base line; and its width.
pub(super) fn strokes(text: &str, size: f64) -> (Vec<Vec<(f64, f64)>>, f64) {
    let (column, row) = (size * 0.1, size * 0.115);
    let mut lines = Vec::new();
    let mut at = 0.0;
    for letter in text.chars() {
        let drawn = LETTERS.iter().find(|(known, _)| *known == letter).map_or(UNKNOWN, |(_, drawn)| drawn);
        for stroke in drawn.split_whitespace() {
            let points = stroke.as_bytes().chunks_exact(2).map(|pair| {
                let digit = |byte: u8| f64::from(byte - b'0');
                (at + digit(pair[0]) * column, -(digit(pair[1]) - 2.0) * row)
            });
            lines.push(points.collect());
        }
        at += ADVANCE * column;
    }
    (lines, (at - (ADVANCE - 4.0) * column).max(0.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_letter_of_a_name_can_be_drawn_and_no_two_look_alike() {
        let drawn = |letter: char| LETTERS.iter().find(|(known, _)| *known == letter).map(|(_, drawn)| *drawn);
        for letter in ('a'..='z').chain('A'..='Z').chain('0'..='9').chain(" -_.:/>%(),".chars()) {
            assert!(drawn(letter).is_some(), "{letter:?} is missing");
        }
        for (index, (letter, drawn)) in LETTERS.iter().enumerate() {
            let digits: String = drawn.split_whitespace().collect();
            assert!(digits.len() % 2 == 0 && digits.bytes().all(|byte| byte.is_ascii_digit()), "{letter:?}");
            assert!(LETTERS[..index].iter().all(|(_, other)| other != drawn), "{letter:?} looks like another");
        }
        let (lines, width) = strokes("ab", 10.0);
        assert!((width - 9.4).abs() < 1e-9 && lines.iter().flatten().all(|(x, _)| (0.0..=width).contains(x)));
    }
}
