package bulletinboard.service;

/** Invalid input from the client; the message names the parameter and the value. */
public final class InvalidInputException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    public InvalidInputException(String message) {
        super(message);
    }
}
