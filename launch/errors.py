"""What a verb raises when it can't go on; __main__ prints it and exits with its code."""


class LaunchError(Exception):
    """One or more sentences for the person at the terminal: what came, what was expected, what to do.

    `exit_code` is 2 for input or a command line that can't be used, 1 for something that failed.
    """

    def __init__(self, message: str, exit_code: int = 2):
        super().__init__(message)
        self.exit_code = exit_code
