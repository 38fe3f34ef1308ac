//! What two people let through until a day.

use crate::entries::Seen;
use crate::fault::{Faults, quoted};
use crate::form::Fields;
use crate::policy::Exception;
use crate::programs;
use crate::time;

use super::identity::{is_bot, is_same_person};

pub(super) fn read(fields: Fields, today: &str, faults: &mut Faults) -> Vec<Exception> {
    let mut seen = Seen::default();
    let mut exceptions = Vec::new();
    for node in fields.list("exceptions").unwrap_or_default() {
        let fields = Fields::of(node);
        if let Some((at, what)) = fields.text("allows") {
            seen.once(&what.to_owned(), what, "exceptions", at, faults);
        }
        exceptions.push(one(fields, node.at.line, today, faults));
    }
    exceptions
}

fn one(fields: Fields, line: u32, today: &str, faults: &mut Faults) -> Exception {
    let text = |key| fields.text(key).map(|(_, text)| text.to_owned()).unwrap_or_default();
    check_allows(fields, faults);
    check_reviewers(fields, faults);
    check_expires(fields, today, faults);
    let reviewers = fields.texts("reviewers").unwrap_or_default();
    Exception {
        allows: text("allows"),
        reviewers: reviewers.into_iter().map(|(_, name)| name.trim().to_owned()).collect(),
        reason: text("reason"),
        expires: text("expires"),
        line,
    }
}

fn check_allows(fields: Fields, faults: &mut Faults) {
    let Some((at, what)) = fields.text("allows") else { return };
    if !programs::is_exceptional(what) {
        let message =
            format!("allows: {} is neither a shell nor an interpreter's form", quoted(what));
        let help = "write the plain name, as in \"bash\", or the form, as in \"python -c\"";
        faults.add(at, "exception-allows", message, help);
    }
}

fn check_reviewers(fields: Fields, faults: &mut Faults) {
    let (Some(at), Some(names)) = (fields.at("reviewers"), fields.texts("reviewers")) else {
        return;
    };
    for (at, name) in &names {
        if is_bot(name) {
            let message = format!("reviewers: {} is a bot", quoted(name));
            faults.add(*at, "exception-reviewers", message, "name people");
        }
    }
    let different = names
        .first()
        .is_some_and(|(_, first)| names.iter().any(|(_, other)| !is_same_person(first, other)));
    if !different {
        let message = "reviewers: fewer than two different people";
        faults.add(
            at,
            "exception-reviewers",
            message,
            "have a second person review it, and name both",
        );
    }
}

fn check_expires(fields: Fields, today: &str, faults: &mut Faults) {
    let Some((at, day)) = fields.text("expires") else { return };
    if !time::is_day(day) {
        let message = format!("expires: {} is no calendar day", quoted(day));
        faults.add(at, "date", message, "write it as YYYY-MM-DD");
    } else if day < today {
        let message = format!("expires: {day} is over, today is {today}");
        faults.add(at, "exception-expired", message, "have it reviewed again, or remove it");
    }
}
