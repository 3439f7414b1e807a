package bulletinboard.service;

public final class NoSuchAdvertisementException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    public NoSuchAdvertisementException(long id) {
        super("no advertisement with id " + id);
    }
}
