"""The commands of ``specforge``, one module each: ``add_parser`` adds its options, ``run`` gives its exit status."""
