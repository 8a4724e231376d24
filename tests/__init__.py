"""The project's own tests; a package, so that equal file names in different folders can live side by side."""
