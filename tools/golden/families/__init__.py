"""The instruction forms, one module for related families; every function yields the forms of one."""
