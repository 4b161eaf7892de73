//! What a variable holds has names - a model's parameters, an optimizer's state - that only generated code can ask for: a hidden
//! cell says once of each type how.
use super::magic::Host;
use xlazy_mime::Question;

/// Lets the runtime know how variables of types that it has not met name what they hold. Where no cell can say so, they have no
/// names, and nothing else is lost.
pub fn learn(host: &dyn Host) {
    let Ok(unknown) = host.call(Question::Unnamed, "") else { return };
    let names: Vec<String> = serde_json::from_str(unknown.plain()).unwrap_or_default();
    if names.is_empty() {
        return;
    }
    let code = |names: &[String]| {
        let learn: String = names.iter().map(|n| format!("(&&&Named(&{n})).learn();")).collect();
        format!(
            "{{ use xlazy::cell::named::{{LearnModule as _, LearnNothing as _, LearnOptimizer as _, Named}}; {learn} }}"
        )
    };
    // One that no cell can name must not take the names of the others.
    if !matches!(host.run_code(&code(&names), &mut |_| {}), crate::engine::Reply::Ok) && names.len() > 1 {
        for name in &names {
            host.run_code(&code(std::slice::from_ref(name)), &mut |_| {});
        }
    }
}
