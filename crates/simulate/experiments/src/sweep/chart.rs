//! One column of a table over another.

use std::collections::BTreeMap;

use plot::{Chart, Kind, Series};

use super::csv::fields;
use crate::Error;

/// What to draw of a table.
#[derive(Clone, Copy, Debug)]
pub struct ChartRequest<'a> {
    /// What the table is called in errors.
    pub name: &'a str,
    /// The table, with a header.
    pub text: &'a str,
    /// The column along the bottom.
    pub x: &'a str,
    /// The column along the side.
    pub y: &'a str,
    /// A line or a colour for each value of this column.
    pub by: Option<&'a str>,
    /// Only rows with all of these values.
    pub filters: &'a [Filter],
}

/// A value that a column must have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Filter {
    /// The column.
    pub column: String,
    /// The value.
    pub value: String,
}

/// A row that is drawn.
struct Mark {
    x: String,
    y: f64,
    by: String,
}

/// Draws one column of a table over another; rows that agree in `x` and `by` are averaged.
///
/// # Errors
/// [`Error::Request`], if the table has no such column, a value is no number, or no row is left.
pub fn chart(columns: &ChartRequest<'_>) -> Result<Chart, Error> {
    let ChartRequest { name, text, filters, .. } = *columns;
    let mut lines = text.lines().enumerate();
    let header = lines.next().map(|(_, line)| fields(line)).unwrap_or_default();
    let column = |wanted: &str| {
        header.iter().position(|known| known == wanted).ok_or_else(|| {
            Error::Request(format!("{name}:1: there is no column {wanted:?}; there are {}", header.join(", ")))
        })
    };
    let (x, y) = (column(columns.x)?, column(columns.y)?);
    let by = columns.by.map(column).transpose()?;
    let filters: Vec<(usize, &str)> = filters
        .iter()
        .map(|filter| Ok((column(&filter.column)?, filter.value.as_str())))
        .collect::<Result<_, Error>>()?;
    let mut marks = Vec::new();
    for (number, line) in lines {
        let row = fields(line);
        if row.len() != header.len() {
            let (found, wanted) = (row.len(), header.len());
            return Err(Error::Request(format!("{name}:{}: {found} fields instead of {wanted}", number + 1)));
        }
        // A row without the value, such as one without a plan, has nothing to draw.
        if row[y].is_empty() || filters.iter().any(|(at, value)| row[*at] != *value) {
            continue;
        }
        let Ok(value) = row[y].parse::<f64>() else {
            return Err(Error::Request(format!("{name}:{}: {} is {:?}, no number", number + 1, columns.y, row[y])));
        };
        marks.push(Mark { x: row[x].clone(), y: value, by: by.map_or_else(String::new, |by| row[by].clone()) });
    }
    if marks.is_empty() {
        return Err(Error::Request(format!("{name}: no row has a value to draw; loosen --where")));
    }
    Ok(Chart {
        title: match columns.by {
            Some(by) => format!("{} by {by}", columns.y),
            None => columns.y.to_owned(),
        },
        x: columns.x.to_owned(),
        y: columns.y.to_owned(),
        kind: arrange(&marks),
    })
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

#[cfg(test)]
mod tests {
    use super::*;

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
