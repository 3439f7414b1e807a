package bulletinboard.model;

/** The requested part of a list. {@code number} counts from 1. */
public record Page(int number, int size) {

    public long offset() {
        return (number - 1L) * size;
    }
}
