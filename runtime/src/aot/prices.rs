//! What a program would cost: list prices, which the user's own file replaces.
use super::report::Report;
use std::path::PathBuf;
use xlazy_mime::units;

/// Those that were published when this was written; a chip without a price is told of.
const LISTED: &str = include_str!("prices.json");

/// The user's own prices: `XLAZY_PRICES`, or `xlazy/prices.json` where programs keep what people configure. It has the form of the
/// table of ours: `{"chips": {"v5e": 0.6}}`, with `currency` and `source` where they differ.
fn file() -> Option<PathBuf> {
    let var = |name: &str| std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
    var("XLAZY_PRICES").or_else(|| {
        let folder = var("XDG_CONFIG_HOME").or_else(|| var("HOME").map(|home| home.join(".config")))?;
        Some(folder.join("xlazy/prices.json"))
    })
}

struct Price {
    per_chip_hour: f64,
    currency: String,
    source: String,
}

/// The price of a chip in a table.
fn listed(table: &str, chip: &str, source: &str) -> Result<Option<Price>, String> {
    let table = crate::json::parse(table).map_err(|e| e.to_string())?;
    let text = |key: &str, other: &str| table[key].as_str().unwrap_or(other).to_owned();
    let Some(price) = table["chips"].get(chip) else { return Ok(None) };
    let per_chip_hour = price.as_f64().filter(|p| p.is_finite() && *p >= 0.0);
    let per_chip_hour = per_chip_hour.ok_or_else(|| format!("the price of {chip} is no number: {price}"))?;
    Ok(Some(Price { per_chip_hour, currency: text("currency", "USD"), source: text("source", source) }))
}

fn of(chip: &str) -> Result<Option<Price>, String> {
    if let Some(path) = file()
        && let Ok(own) = std::fs::read_to_string(&path)
    {
        let path = path.display().to_string();
        match listed(&own, chip, &path) {
            Ok(None) => {}
            Ok(price) => return Ok(price),
            Err(e) => return Err(format!("{path} is not read: {e}")),
        }
    }
    listed(LISTED, chip, "")
}

/// The sentence on money.
pub(super) fn line(r: &Report) -> String {
    let (name, layout) = r.topology.split_once(':').unwrap_or((&r.topology, "1"));
    let price = match of(name) {
        Ok(Some(price)) => price,
        Ok(None) => return format!("no list price of {name} is known: XLAZY_PRICES names a file with yours"),
        Err(why) => return why,
    };
    let chips: f64 = layout.split('x').filter_map(|d| d.parse::<f64>().ok()).product::<f64>() * r.slices.max(1) as f64;
    let hour = price.per_chip_hour * chips;
    let currency = &price.currency;
    let seconds = r.seconds().max(r.least_seconds()) + r.collectives.iter().map(|m| m.seconds).sum::<f64>();
    let million = match seconds > 0.0 {
        true => format!(", {} {currency} for a million steps of that time", amount(hour * seconds / 3600.0 * 1e6)),
        false => String::new(),
    };
    let chips = units::thousands(chips as u64) + if chips == 1.0 { " chip" } else { " chips" };
    format!("{} {currency} an hour for {chips}{million} (price: {})", amount(hour), price.source)
}

fn amount(x: f64) -> String {
    match x {
        x if x >= 1000.0 => units::thousands(x.round() as u64),
        x if x >= 0.1 => format!("{x:.2}"),
        x => format!("{x:.4}"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::report::Time;
    use super::*;

    #[test]
    fn hours_and_steps_have_a_price() {
        let time = Time { cycles: 1_500_000, clock: 1.5e9, ..Time::default() };
        let r = Report { topology: "v5e:4x4".into(), slices: 2, time, ..Report::default() };
        let said = line(&r);
        assert!(
            said.starts_with(
                "38.40 USD an hour for 32 chips, 10.67 USD for a million steps of that time (price: on demand"
            ),
            "{said}"
        );
        assert!(line(&Report { topology: "v2:2x2".into(), ..r }).starts_with("no list price of v2 is known"));
        let own = r#"{"currency": "EUR", "chips": {"v4": 2, "v3": "dear"}}"#;
        let price = listed(own, "v4", "mine").unwrap().unwrap();
        assert_eq!((price.per_chip_hour, &*price.currency, &*price.source), (2.0, "EUR", "mine"));
        assert!(listed(own, "v5e", "").unwrap().is_none());
        assert!(listed(own, "v3", "").err().unwrap().contains("no number"));
        assert!(listed("{", "v3", "").is_err());
    }
}
