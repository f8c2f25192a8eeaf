"""The fixture that every test of the terminal program shares."""

from tests.terminal import pilot

terminal = pilot.terminal
