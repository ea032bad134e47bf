"""The embedded terminal: an emulator in a child process and the widget that shows it.

`output.TerminalSource` feeds `view.TerminalView`; one `host.EmulatorHost` per cockpit owns the child
process. Nothing is imported here, because the child imports this package and must stay light.
"""
