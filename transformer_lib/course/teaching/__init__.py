"""Tools for teachers: what the notebooks become in a class. Learners need nothing from here."""
