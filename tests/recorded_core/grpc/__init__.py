"""As much of gRPC as the driver looks at."""


class RpcError(Exception):
    def __init__(self, code: str, details: str) -> None:
        super().__init__(details)
        self._code, self._details = code, details

    def code(self) -> str:
        return self._code

    def details(self) -> str:
        return self._details
