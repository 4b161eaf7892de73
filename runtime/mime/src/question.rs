//! The questions that the kernel may put to a session, each with its name on the wire. Who asks and who answers name the same
//! value: a question without an answer does not compile.

macro_rules! questions {
    ($($(#[$doc:meta])* $question:ident $name:literal,)*) => {
        /// A question to a session; [`crate::Ask::Call`] puts it, with arguments of its own.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Question {
            $($(#[$doc])* $question,)*
        }

        impl Question {
            pub const ALL: &[Question] = &[$(Question::$question),*];

            pub const fn name(self) -> &'static str {
                match self {
                    $(Question::$question => $name,)*
                }
            }
        }
    };
}

questions! {
    /// Counters and times in torch_xla's report format.
    Metrics "metrics",
    /// The pending graph.
    Graph "graph",
    /// The pending graph as text.
    Ir "ir",
    /// The program that was synced last.
    Stablehlo "stablehlo",
    /// The same after XLA's passes.
    Hlo "hlo",
    /// What its devices tell one another.
    Collectives "collectives",
    /// Every public name, for completion.
    Names "names",
    /// What one of them is.
    Doc "doc",
    /// Tells of a cell's source: which lines are whose.
    Cell "cell",
    /// What the disk has of a program compiled for a TPU.
    Aot "aot",
    /// Which platform programs run on, or are to.
    Device "device",
    /// The pod's workers, or whether a pod can be such, or is there.
    Pod "pod",
    /// Why a program was compiled again.
    Why "why",
    /// All compilations.
    Compiles "compiles",
    /// What takes long right now.
    Pending "pending",
    /// Attributes that became parameters.
    Healed "healed",
    /// Whether they may.
    Heal "heal",
    /// Which numbers no result may have.
    Nan "nan",
    /// What a result inside of the last program is.
    Peek "peek",
    /// Whether each op is a program of its own.
    Eager "eager",
    /// Whether the last program's values are those of a file.
    Compare "compare",
    /// Begins to measure what the device does, or ends it.
    Profile "profile",
    /// The stages of what a cell runs.
    Stages "stages",
    /// The cells as an explanation would have them.
    Fix "fix",
    /// Whether each sync and compilation is told as it happens.
    Events "events",
    /// How many compilations a cell may cost.
    Budget "budget",
    /// Variables of which it is not known yet how they name what they hold.
    Unnamed "unnamed",
    /// Device memory by what holds it.
    Memory "memory",
    /// Where time went.
    Timeline "timeline",
    /// Lets go of variables.
    Forget "forget",
    /// Sets the state of the random numbers.
    Generator "generator",
    /// What a front end has sent to a widget, and what goes back.
    Widget "widget",
    /// Opens objects before the cell that needs them.
    Load "load",
    /// What the cell before kept for a checkpoint.
    CheckpointKept "checkpoint-kept",
    /// Writes it to a file.
    CheckpointWrite "checkpoint-write",
    /// Opens a file, for cells to take from.
    CheckpointOpen "checkpoint-open",
    /// Closes it.
    CheckpointClose "checkpoint-close",
}

impl Question {
    /// The question of that name.
    pub fn named(name: &str) -> Option<Question> {
        Question::ALL.iter().copied().find(|q| q.name() == name)
    }
}

impl std::fmt::Display for Question {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        f.write_str(self.name())
    }
}
