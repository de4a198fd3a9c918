"""Sources that are files of other forms than a landing has: each is read front to back, and refused where it is cut."""
