package bulletinboard.web;

final class RefusedException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    private final transient Answer answer;

    RefusedException(Answer answer) {
        super(answer.text());
        this.answer = answer;
    }

    RefusedException(int status, String message) {
        this(Answer.error(status, message));
    }

    Answer answer() {
        return answer;
    }
}
