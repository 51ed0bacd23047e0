//! The rules of CONTRIBUTING.md and ARCHITECTURE.md that a program can check, checked.
//!
//! Reads the repository as it stands: the files that git knows or, where there is no git, all
//! files that `.gitignore` does not name. A rule is a function from texts to [`Offence`]s; each
//! module tries its rules on small samples first, so that every rule is known to fail when it
//! should. Nothing is built or run here but `git ls-files`.

#![forbid(unsafe_code)]

mod architecture;
mod circles;
mod documents;
mod layers;
mod manifest;
mod purity;
mod repository;
mod shape;
mod source;
mod unfinished;
mod unsafety;
mod waiting;
mod words;
mod writing;

use repository::{Repository, passes};

#[test]
fn functions_files_and_lines_are_short() {
    let repository = Repository::read();
    passes(repository.each_file(shape::sizes));
}

#[test]
fn every_rust_file_says_what_it_is() {
    let repository = Repository::read();
    passes(repository.each_rust_file_outside_tests(shape::module_doc));
}

#[test]
fn no_file_or_folder_is_named_for_what_does_not_fit_elsewhere() {
    let repository = Repository::read();
    passes(repository.each_file(shape::path_words));
}

#[test]
fn no_tracked_file_names_a_path_of_one_machine() {
    let repository = Repository::read();
    passes(repository.each_file(shape::machine_paths));
}

#[test]
fn no_path_of_the_building_machine_is_compiled_in() {
    let repository = Repository::read();
    passes(repository.each_rust_file_outside_tests(shape::compiled_paths));
}

#[test]
fn circles_of_files_are_small() {
    passes(circles::circles(&Repository::read()));
}

#[test]
fn dependencies_point_down_only() {
    let repository = Repository::read();
    passes(repository.each_manifest(layers::dependencies));
}

#[test]
fn every_member_has_a_description_and_the_lints_of_the_workspace() {
    let repository = Repository::read();
    passes(repository.each_manifest(layers::member_settings));
    passes(layers::members(&repository));
}

#[test]
fn unsafe_code_is_in_the_driver_only_and_says_why_it_is_sound() {
    let repository = Repository::read();
    passes(repository.each_file(unsafety::unsafe_code));
    passes(repository.each_file(unsafety::forbidden_elsewhere));
}

#[test]
fn files_are_written_in_one_way() {
    let repository = Repository::read();
    passes(repository.each_rust_file_outside_tests(writing::other_ways));
    passes(writing::stale_exceptions(&repository.files));
}

#[test]
fn the_pure_crates_open_nothing_start_nothing_and_read_no_clock() {
    let repository = Repository::read();
    passes(repository.each_rust_file_outside_tests(purity::impure_names));
    passes(purity::lint_settings(&repository));
}

#[test]
fn commands_use_the_streams_that_they_are_called_with() {
    let repository = Repository::read();
    passes(repository.each_file(purity::streams_of_the_process));
}

#[test]
fn nothing_is_left_unfinished_ignored_or_waiting() {
    let repository = Repository::read();
    passes(repository.each_file(unfinished::marks));
    passes(repository.each_file(unfinished::names_and_sleeps));
}

#[test]
fn tests_end_waits_by_events_and_bound_no_duration() {
    let repository = Repository::read();
    passes(repository.each_file(waiting::pauses));
    passes(repository.each_file(waiting::short_timeouts));
    passes(repository.each_file(waiting::duration_bounds));
    passes(waiting::stale_exceptions(&repository.files));
}

#[test]
fn the_architecture_document_is_true() {
    let repository = Repository::read();
    passes(architecture::paths(&repository));
    passes(architecture::crates(&repository));
    passes(architecture::dependency_lines(&repository));
}

#[test]
fn links_in_documents_lead_somewhere_and_documents_are_short() {
    let repository = Repository::read();
    passes(documents::links(&repository));
    passes(repository.each_file(documents::lengths));
    passes(documents::contents(&repository));
}

#[test]
fn help_output_and_documents_use_the_usual_words() {
    let repository = Repository::read();
    passes(repository.each_rust_file_outside_tests(words::in_output));
    passes(repository.each_file(words::in_documents));
}
