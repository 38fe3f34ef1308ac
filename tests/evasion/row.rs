//! A row of the table: an attempt, and what is said of it.

/// One attempt to do what the policy does not allow.
pub(crate) struct Row {
    /// Its group: 0 for a plain operation, else the number of the evasion.
    pub(crate) group: u8,
    pub(crate) name: &'static str,
    /// Words for `trigger`; those in braces are filled in.
    pub(crate) words: &'static str,
    /// Records of which one has to be there: class and action, and what the
    /// object holds; ` | ` between several. Empty for what need not be recorded.
    pub(crate) sees: &'static str,
    pub(crate) harm: Harm,
    pub(crate) lsm: Want,
    pub(crate) tracepoint: Want,
    /// It would harm the machine it runs on, or blind a daemon that others
    /// need: it gets its own of both.
    pub(crate) alone: bool,
    /// The harm is done when the first process has ended.
    pub(crate) late: bool,
}

/// How harm is told from none.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Harm {
    /// Something outside is not as it was, or heard from the job.
    World,
    /// The attempt itself says that it worked.
    Done,
    /// None, but the kernel looked at what it was given: nobody was in the way.
    Reached,
    /// There is none: nothing of it may be a violation.
    None,
}

/// What has to come of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Want {
    /// A violation with the right object; under `enforce` denied before the harm.
    Violation,
    /// The same; where it is let happen, there may be nobody left to say so.
    OrGone,
    /// A violation, under `enforce` as well, for what is only known afterwards.
    Seen,
    /// The verdict says that it is not known.
    Open,
    /// One of the two.
    NotPass,
    /// Whatever it says: nothing happened.
    Any,
    /// It is harmless, and nothing of it may be a violation.
    Pass,
    /// The same, but whether it is harmless may not be known.
    Either,
}

/// What a row says unless it says otherwise.
pub(crate) const ROW: Row = Row {
    group: 0,
    name: "",
    words: "",
    sees: "",
    harm: Harm::World,
    lsm: Want::Violation,
    tracepoint: Want::Violation,
    alone: false,
    late: false,
};
