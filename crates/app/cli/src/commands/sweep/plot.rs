//! One column of a table over another.

use plot::{Chart, Kind, Series};
use std::{collections::BTreeMap, path::Path, process::ExitCode};

use anyhow::Result;

use crate::{
    cli::Filter,
    failure::bad_input,
    files::read_text,
    pictures::{check_name, write_picture},
};

/// Which columns to draw.
pub(super) struct Columns<'a> {
    pub(super) x: &'a str,
    pub(super) y: &'a str,
    pub(super) by: Option<&'a str>,
}

/// A row that is drawn.
struct Mark {
    x: String,
    y: f64,
    by: String,
}

pub(super) fn run(table: &Path, columns: &Columns<'_>, filters: &[Filter], to: &Path) -> Result<ExitCode> {
    check_name(to)?;
    let (name, text) = read_text(table)?;
    let mut lines = text.lines().enumerate();
    let header = lines.next().map(|(_, line)| fields(line)).unwrap_or_default();
    let column = |wanted: &str| {
        header.iter().position(|known| known == wanted).ok_or_else(|| {
            bad_input(format!("{name}:1: there is no column {wanted:?}; there are {}", header.join(", ")))
        })
    };
    let (x, y) = (column(columns.x)?, column(columns.y)?);
    let by = columns.by.map(column).transpose()?;
    let filters: Vec<(usize, &str)> =
        filters.iter().map(|filter| Ok((column(&filter.column)?, filter.value.as_str()))).collect::<Result<_>>()?;
    let mut marks = Vec::new();
    for (number, line) in lines {
        let row = fields(line);
        if row.len() != header.len() {
            let (found, wanted) = (row.len(), header.len());
            return Err(bad_input(format!("{name}:{}: {found} fields instead of {wanted}", number + 1)));
        }
        // A row without the value, such as one without a plan, has nothing to draw.
        if row[y].is_empty() || filters.iter().any(|(at, value)| row[*at] != *value) {
            continue;
        }
        let Ok(value) = row[y].parse::<f64>() else {
            return Err(bad_input(format!("{name}:{}: {} is {:?}, no number", number + 1, columns.y, row[y])));
        };
        marks.push(Mark { x: row[x].clone(), y: value, by: by.map_or_else(String::new, |by| row[by].clone()) });
    }
    if marks.is_empty() {
        return Err(bad_input(format!("{name}: no row has a value to draw; loosen --where")));
    }
    let chart = Chart {
        title: match columns.by {
            Some(by) => format!("{} by {by}", columns.y),
            None => columns.y.to_owned(),
        },
        x: columns.x.to_owned(),
        y: columns.y.to_owned(),
        kind: arrange(&marks),
    };
    write_picture(to, &chart.draw())?;
    Ok(ExitCode::SUCCESS)
}

/// Lines over numbers, bars over words; marks that share a place are averaged, and keep the order in which they came.
fn arrange(marks: &[Mark]) -> Kind {
    let mut names: Vec<&str> = Vec::new();
    let mut places: Vec<&str> = Vec::new();
    let mut sums: BTreeMap<(&str, &str), (f64, f64)> = BTreeMap::new();
    for mark in marks {
        if !names.contains(&mark.by.as_str()) {
            names.push(&mark.by);
        }
        if !places.contains(&mark.x.as_str()) {
            places.push(&mark.x);
        }
        let (sum, count) = sums.entry((&mark.by, &mark.x)).or_default();
        *sum += mark.y;
        *count += 1.0;
    }
    let mean = |name: &str, place: &str| sums.get(&(name, place)).map(|(sum, count)| sum / count);
    let numbers: Option<Vec<(f64, &str)>> =
        places.iter().map(|place| Some((place.parse::<f64>().ok().filter(|x| x.is_finite())?, *place))).collect();
    match numbers {
        Some(mut numbers) => {
            numbers.sort_by(|a, b| a.0.total_cmp(&b.0));
            let line = |name: &&str| Series {
                name: (*name).to_owned(),
                values: numbers.iter().filter_map(|(x, place)| Some((*x, mean(name, place)?))).collect(),
            };
            Kind::Lines(names.iter().map(line).collect())
        }
        None => {
            let bars = |name: &&str| Series {
                name: (*name).to_owned(),
                values: places.iter().map(|place| mean(name, place)).collect(),
            };
            let groups = places.iter().map(|place| (*place).to_owned()).collect();
            Kind::Bars { groups, series: names.iter().map(bars).collect() }
        }
    }
}

/// The fields of a line, as RFC 4180 has them.
pub(super) fn fields(line: &str) -> Vec<String> {
    let (mut fields, mut field, mut is_quoted) = (Vec::new(), String::new(), false);
    let mut letters = line.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '"' if is_quoted && letters.peek() == Some(&'"') => {
                letters.next();
                field.push('"');
            }
            '"' => is_quoted = !is_quoted,
            ',' if !is_quoted => fields.push(std::mem::take(&mut field)),
            _ => field.push(letter),
        }
    }
    fields.push(field);
    fields
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_come_back_as_they_were_written() {
        assert_eq!(fields("a,\"b, \"\"c\"\"\",,d"), ["a", "b, \"c\"", "", "d"]);
        assert_eq!(fields(""), [""]);
    }

    #[test]
    fn numbers_give_lines_in_order_and_words_bars() {
        let mark = |x: &str, y: f64, by: &str| Mark { x: x.to_owned(), y, by: by.to_owned() };
        let marks = [mark("64", 1.0, "a"), mark("9", 2.0, "a"), mark("9", 4.0, "a"), mark("64", 7.0, "b")];
        let Kind::Lines(lines) = arrange(&marks) else { panic!("bars") };
        assert_eq!(
            (lines[0].values.as_slice(), lines[1].values.as_slice()),
            (&[(9.0, 3.0), (64.0, 1.0)][..], &[(64.0, 7.0)][..])
        );
        let Kind::Bars { groups, series } = arrange(&[mark("torus", 1.0, ""), mark("mesh", 2.0, "")]) else {
            panic!("lines")
        };
        assert_eq!((groups.len(), series[0].values.as_slice()), (2, &[Some(1.0), Some(2.0)][..]));
    }
}
