"""[xiang2008] reproduced."""
