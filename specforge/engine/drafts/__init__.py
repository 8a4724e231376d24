"""Where drafts come from: one module an algorithm, all behind `Drafter`."""
