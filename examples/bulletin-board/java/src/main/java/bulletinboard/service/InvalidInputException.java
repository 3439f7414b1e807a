package bulletinboard.service;

/** Invalid input from the client; the message says what is wrong. */
public final class InvalidInputException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    public InvalidInputException(String message) {
        super(message);
    }
}
