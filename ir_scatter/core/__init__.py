"""Models, values, shapes, types, findings and files; knows no operator and no file format."""
